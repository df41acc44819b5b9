#include "record/log/svg.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/utf8.hpp"

namespace t3d {
namespace {

std::string joined(const SvgPoints& points) {
  std::string out;
  for (const auto& [x, y] : points)
    out += fmt::format("{}{},{}", out.empty() ? "" : " ", pixels(x), pixels(y));
  return out;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  for (const char letter : printable(text)) {
    switch (letter) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += letter;
    }
  }
  return out;
}

std::string pixels(double length) {
  const double rounded = std::round(10 * length) / 10;
  return fmt::format("{:.1f}", rounded == 0 ? 0.0 : rounded);
}

Svg::Svg(int width, int height)
    : out_(fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
                       "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" fill=\"#222\">\n"
                       "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
                       width, height)) {}

void Svg::shape(const std::string& tag, std::string_view style, std::string_view tip) {
  const std::string_view name = std::string_view(tag).substr(0, tag.find(' '));
  out_ += fmt::format("<{} {}", tag, style);
  out_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></{}>\n", xml_text(tip), name);
}

void Svg::line(double x1, double y1, double x2, double y2, std::string_view style,
               std::string_view tip) {
  shape(fmt::format(R"(line x1="{}" y1="{}" x2="{}" y2="{}")", pixels(x1), pixels(y1), pixels(x2),
                    pixels(y2)),
        style, tip);
}

void Svg::rect(const SvgFrame& frame, std::string_view style, std::string_view tip) {
  shape(fmt::format(R"(rect x="{}" y="{}" width="{}" height="{}")", pixels(frame.left),
                    pixels(frame.top), pixels(frame.width), pixels(frame.height)),
        style, tip);
}

void Svg::text(double x, double y, std::string_view text, std::string_view style) {
  out_ += fmt::format("<text x=\"{}\" y=\"{}\" {}>{}</text>\n", pixels(x), pixels(y), style,
                      xml_text(text));
}

void Svg::polyline(const SvgPoints& points, std::string_view style, std::string_view tip) {
  shape(fmt::format(R"(polyline points="{}" fill="none")", joined(points)), style, tip);
}

void Svg::polygon(const SvgPoints& points, std::string_view style, std::string_view tip) {
  shape(fmt::format(R"(polygon points="{}")", joined(points)), style, tip);
}

void Svg::clip(const SvgFrame& frame, std::string_view id) {
  out_ += fmt::format("<clipPath id=\"{}\">", id);
  rect(frame, "");
  out_ += fmt::format("</clipPath>\n<g clip-path=\"url(#{})\">\n", id);
}

std::vector<double> round_ticks(double low, double high, int count, double least) {
  const double rough = std::max((high - low) / count, least);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double lead = rough / power;
  // The next round step, unless the one below is close enough.
  const double step = power * (lead < 1.5 ? 1 : lead < 3.5 ? 2 : lead < 7.5 ? 5 : 10);
  std::vector<double> ticks;
  const double first = std::ceil(low / step - 1e-9), last = std::floor(high / step + 1e-9);
  for (double at = first; at <= last; ++at) ticks.push_back(at == 0 ? 0 : at * step);  // no -0
  return ticks;
}

SvgAxis upward_axis(const SvgFrame& frame, double most, int count) {
  SvgAxis axis{0, 1, frame.bottom(), frame.top, round_ticks(0, most > 0 ? most : 1, count)};
  const double apart = axis.ticks.at(1);
  while (axis.ticks.back() < most)
    axis.ticks.push_back(apart * static_cast<double>(axis.ticks.size()));
  axis.high = axis.ticks.back();
  return axis;
}

void draw_upward_axis(Svg& svg, const SvgFrame& frame, const SvgAxis& axis,
                      const std::string& name) {
  for (const double tick : axis.ticks) {
    const double y = axis.at(tick);
    svg.line(frame.left, y, frame.right(), y, R"(stroke="#e4e4e4")");
    svg.text(frame.left - 6, y + 4, fmt::format("{:.9g}", tick),
             R"(font-size="11" text-anchor="end")");
  }
  const double x = 16, y = frame.top + frame.height / 2;
  svg.text(x, y, name,
           fmt::format(R"x(font-size="12" text-anchor="middle" transform="rotate(-90 {} {})")x",
                       pixels(x), pixels(y)));
}

}  // namespace t3d
