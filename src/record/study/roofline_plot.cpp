#include "record/study/roofline_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "record/log/svg.hpp"

namespace t3d {
namespace {

constexpr int kWidth = 800;
constexpr SvgFrame kFrame{70, 62, 706, 340};
constexpr double kTable = 488, kRow = 17;  // pixels: its first line, and between lines
constexpr std::size_t kMostMatmuls = 30;
constexpr double kGiga = 1e9;
constexpr double kMark = 4.5;       // half a side
constexpr double kDoubtful = 0.05;  // relative error of the seconds
constexpr const char* kSmall = R"(font-size="12")";
constexpr const char* kRight = R"(font-size="12" text-anchor="end")";
constexpr const char* kMiddle = R"(font-size="12" text-anchor="middle")";
constexpr const char* kRoof = R"(stroke="#222" stroke-width="2")";
constexpr const char* kPeak = R"(stroke="#cc3311" stroke-width="1.5" stroke-dasharray="7 4")";

struct Mark {
  const char* colour;
  int corners;  // 4: square, 3: triangle, 2: diamond
  bool hollow;  // not known well
};
Mark mark_of(const RooflinePoint& point) {
  const std::string use = use_of(point);
  const bool hollow = point.error > kDoubtful;
  if (use == "forward") return {"#0072b2", 4, hollow};
  if (use == "input gradient") return {"#d55e00", 4, hollow};
  if (use == "weight gradient") return {"#009e73", 4, hollow};
  return point.shape.size() > 1 ? Mark{"#aa3377", 3, hollow} : Mark{"#777777", 2, hollow};
}

/// Values from low to high along pixels, by their logarithms.
struct LogAxis {
  double low, high, from, to;
  [[nodiscard]] double at(double value) const {
    return from + (std::log10(value) - std::log10(low)) / (std::log10(high) - std::log10(low)) *
                      (to - from);
  }
  /// 1, 2 and 5 times powers of ten; the powers alone where there are many.
  [[nodiscard]] std::vector<double> ticks() const {
    constexpr double kWide = 3.2;  // decades
    const bool all = std::log10(high / low) < kWide;
    std::vector<double> found;
    for (double power = std::floor(std::log10(low)); power <= std::log10(high); ++power)
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double tick = factor * std::pow(10, power);
        if (tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9) && (all || factor == 1))
          found.push_back(tick);
      }
    return found;
  }
};

/// A name's place beside its mark that covers no other name and no other mark.
class Places {
 public:
  explicit Places(const SvgPoints& marks) {
    for (const auto& [x, y] : marks) taken_.push_back({x - kMark, y - kMark, 2 * kMark, 2 * kMark});
  }
  /// Lower left corner of a text so wide, for a mark at (x, y): close to it, or in the free place
  /// of the frame that is nearest.
  std::pair<double, double> find(double x, double y, double width) {
    for (double away = kAway; away <= 4 * kAway; away += kAway)
      for (const auto& [dx, dy] : std::array<std::pair<double, double>, 8>{
               {{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {1, -1}, {-1, -1}, {1, 1}, {-1, 1}}}) {
        const SvgFrame box{x + dx * away +
                               (dx < 0    ? -width
                                : dx == 0 ? -width / 2
                                          : 0),
                           y + dy * away +
                               (dy < 0    ? -kHigh
                                : dy == 0 ? -kHigh / 2
                                          : 0),
                           width, kHigh};
        if (!free(box)) continue;
        taken_.push_back(box);
        return {box.left, box.bottom()};
      }
    return nearest(x, y, width);
  }

 private:
  static constexpr double kHigh = 9, kAway = 6;  // pixels: of a text; from its mark

  std::pair<double, double> nearest(double x, double y, double width) {
    constexpr double kStep = 3;
    SvgFrame best{x + kAway, y - kHigh, width, kHigh};
    double least = std::numeric_limits<double>::infinity();
    for (double top = kFrame.top + 1; top < kFrame.bottom() - kHigh; top += kStep)
      for (double left = kFrame.left + 1; left < kFrame.right() - width; left += kStep) {
        const double far = std::hypot(left + width / 2 - x, top + kHigh / 2 - y);
        if (far >= least || !free({left, top, width, kHigh})) continue;
        least = far;
        best = {left, top, width, kHigh};
      }
    taken_.push_back(best);
    return {best.left, best.bottom()};
  }
  [[nodiscard]] bool free(const SvgFrame& box) const {
    return box.left > kFrame.left && box.right() < kFrame.right() && box.top > kFrame.top &&
           box.bottom() < kFrame.bottom() &&
           std::none_of(taken_.begin(), taken_.end(), [&](const SvgFrame& other) {
             return box.left < other.right() && other.left < box.right() &&
                    box.top < other.bottom() && other.top < box.bottom();
           });
  }
  std::vector<SvgFrame> taken_;
};

std::string rate_text(double flops_per_second) {
  return flops_per_second >= 1e12 ? fmt::format("{:.3g} TFLOP/s", flops_per_second / 1e12)
                                  : fmt::format("{:.3g} GFLOP/s", flops_per_second / kGiga);
}

void draw_mark(Svg& svg, double px, double py, const Mark& mark, const std::string& tip) {
  const std::string style =
      mark.hollow ? fmt::format(R"(fill="white" stroke="{}" stroke-width="1.5")", mark.colour)
                  : fmt::format(R"(fill="{}" stroke="white" stroke-width="0.8")", mark.colour);
  const double far = kMark * 1.35;
  if (mark.corners == 4)
    svg.rect({px - kMark, py - kMark, 2 * kMark, 2 * kMark}, style, tip);
  else if (mark.corners == 3)
    svg.polygon({{px, py - far}, {px + far, py + kMark}, {px - far, py + kMark}}, style, tip);
  else
    svg.polygon({{px, py - far}, {px + far, py}, {px, py + far}, {px - far, py}}, style, tip);
}

class Picture {
 public:
  Picture(const Roofline& roofline, const std::vector<RooflinePoint>& points)
      : roofline_(roofline), points_(points) {
    double left = roofline.ridge(), right = left, low = roofline.matmul_rate,
           high = std::max(low, roofline.vendor_peak);
    for (const RooflinePoint& point : points) {
      left = std::min(left, point.intensity());
      right = std::max(right, point.intensity());
      low = std::min(low, point.rate());
      high = std::max(high, point.rate());
    }
    x_ = {left / 2, right * 2, kFrame.left, kFrame.right()};
    low = std::min(low, x_.low * roofline.stream_rate);
    y_ = {low / kGiga / 1.5, high / kGiga * 2, kFrame.bottom(), kFrame.top};
  }

  void draw(Svg& svg) const {
    draw_axes(svg);
    draw_roofs(svg);
    name_roofs(svg);
    draw_points(svg);
  }

 private:
  [[nodiscard]] double x(const RooflinePoint& point) const { return x_.at(point.intensity()); }
  [[nodiscard]] double y(double flops_per_second) const { return y_.at(flops_per_second / kGiga); }

  void draw_axes(Svg& svg) const {
    for (const double tick : x_.ticks()) {
      svg.line(x_.at(tick), kFrame.top, x_.at(tick), kFrame.bottom(), R"(stroke="#e4e4e4")");
      svg.text(x_.at(tick), kFrame.bottom() + 17, fmt::format("{:g}", tick), kMiddle);
    }
    for (const double tick : y_.ticks()) {
      svg.line(kFrame.left, y_.at(tick), kFrame.right(), y_.at(tick), R"(stroke="#e4e4e4")");
      svg.text(kFrame.left - 6, y_.at(tick) + 4, fmt::format("{:g}", tick), kRight);
    }
    svg.rect(kFrame, R"(fill="none" stroke="#999")");
    svg.text((kFrame.left + kFrame.right()) / 2, kFrame.bottom() + 36,
             "arithmetic intensity, FLOP per byte", R"(font-size="13" text-anchor="middle")");
    const double middle = (kFrame.top + kFrame.bottom()) / 2;
    svg.text(18, middle, "attained, GFLOP/s",
             fmt::format(R"x(font-size="13" text-anchor="middle" transform="rotate(-90 18.0 {})")x",
                         pixels(middle)));
  }

  void draw_roofs(Svg& svg) const {
    svg.clip(kFrame, "frame");
    const double ridge = roofline_.ridge();
    svg.polyline({{x_.at(x_.low), y(x_.low * roofline_.stream_rate)},
                  {x_.at(ridge), y(roofline_.matmul_rate)},
                  {x_.at(x_.high), y(roofline_.matmul_rate)}},
                 kRoof, "measured roofs");
    if (roofline_.vendor_peak > 0)
      svg.line(x_.at(x_.low), y(roofline_.vendor_peak), x_.at(x_.high), y(roofline_.vendor_peak),
               kPeak, "vendor peak");
    svg.unclip();
  }

  // Below the frame: inside it their names would lie on marks.
  void name_roofs(Svg& svg) const {
    constexpr double kLine = kFrame.top + kFrame.height + 53, kStroke = 26, kColumn = 250;
    double left = kFrame.left;
    const auto name = [&](const char* style, const std::string& text) {
      svg.line(left, kLine - 4, left + kStroke, kLine - 4, style);
      svg.text(left + kStroke + 6, kLine, text, kSmall);
      left += kColumn;
    };
    name(kRoof, "measured matmul rate, " + rate_text(roofline_.matmul_rate));
    name(kRoof, fmt::format("measured streaming, {:.3g} GB/s", roofline_.stream_rate / kGiga));
    if (roofline_.vendor_peak > 0) name(kPeak, "vendor peak, " + rate_text(roofline_.vendor_peak));
  }

  void draw_points(Svg& svg) const {
    SvgPoints marks;
    for (const RooflinePoint& point : points_) marks.emplace_back(x(point), y(point.rate()));
    Places places(marks);
    for (std::size_t at = 0; at < points_.size(); ++at) {
      const RooflinePoint& point = points_[at];
      const auto [px, py] = marks[at];
      draw_mark(svg, px, py, mark_of(point),
                fmt::format("{} {}: {:.3g} FLOP per byte, {}, {:.0f} % of the roof", use_of(point),
                            shape_text(point), point.intensity(), rate_text(point.rate()),
                            100 * point.rate() / roofline_.allowed(point.intensity())));
      const std::string number = std::to_string(at + 1);
      const double width = 6.2 * static_cast<double>(number.size());
      const auto [left, bottom] = places.find(px, py, width);
      constexpr double kFar = 20;  // pixels: whose number it is must be seen
      if (const double x = left + width / 2, y = bottom - 4.5; std::hypot(x - px, y - py) > kFar)
        svg.line(px, py, x, y, R"(stroke="#999" stroke-width="0.5")");
      svg.text(left, bottom, number, R"(font-size="11")");
    }
  }

  const Roofline& roofline_;
  const std::vector<RooflinePoint>& points_;
  LogAxis x_{}, y_{};
};

/// In two columns.
void draw_table(Svg& svg, const std::vector<RooflinePoint>& points) {
  const std::size_t lines = (points.size() + 1) / 2;
  constexpr double kColumn = 376;
  for (std::size_t at = 0; at < points.size(); ++at) {
    const double left = 24 + kColumn * static_cast<double>(at / lines),
                 y = kTable + kRow * static_cast<double>(at % lines);
    const RooflinePoint& point = points[at];
    svg.text(left + 16, y, std::to_string(at + 1), kRight);
    draw_mark(svg, left + 26, y - 4, mark_of(point), "");
    svg.text(left + 36, y, use_of(point), kSmall);
    svg.text(left + 158, y, shape_text(point), kSmall);
    svg.text(left + 362, y, fmt::format("{:.3g}", point.rate() / kGiga), kRight);
  }
}

std::string about(const Roofline& roofline) {
  std::string text = fmt::format(
      "{}: rank 0 of {}, {}{}", roofline.name, roofline.ranks,
      roofline.device == "cpu"
          ? fmt::format("{} thread{}, ", roofline.threads, roofline.threads == 1 ? "" : "s")
          : "",
      roofline.number_format);
  return text + (roofline.emulated ? ", emulated" : "");
}

}  // namespace

std::vector<RooflinePoint> shown_points(const Roofline& roofline) {
  std::vector<RooflinePoint> matmuls;
  std::map<std::string, RooflinePoint> dearest;  // of the other kinds
  for (const RooflinePoint& point : roofline.points) {
    if (point.is_matmul()) {
      matmuls.push_back(point);
      continue;
    }
    const auto known = dearest.try_emplace(point.kind, point).first;
    if (point.times * point.seconds > known->second.times * known->second.seconds)
      known->second = point;
  }
  std::stable_sort(matmuls.begin(), matmuls.end(), [](const auto& a, const auto& b) {
    return a.times * a.seconds > b.times * b.seconds;
  });
  if (matmuls.size() > kMostMatmuls) matmuls.resize(kMostMatmuls);
  for (const auto& [kind, point] : dearest) matmuls.push_back(point);
  return matmuls;
}

std::string roofline_plot(const Roofline& roofline) {
  const std::vector<RooflinePoint> points = shown_points(roofline);
  const bool known = !points.empty() && roofline.matmul_rate > 0 && roofline.stream_rate > 0;
  const double lines = known ? std::ceil(static_cast<double>(points.size()) / 2) : 0;
  Svg svg(kWidth, static_cast<int>(kTable + kRow * lines + 20));
  const std::string device =
      roofline.device == "cpu" ? roofline.processor : roofline.device + ", " + roofline.processor;
  svg.text(24, 24, "Roofline of " + device, R"(font-size="16")");
  svg.text(24, 44, about(roofline), kSmall);
  if (!known) {
    svg.text(24, 90, "no operator of this plan was measured", kSmall);
    return svg.file();
  }
  Picture(roofline, points).draw(svg);
  svg.text(24 + 36, kTable - kRow,
           "operators of the plan, by their part of a step; shape (m x n x k; bytes); GFLOP/s",
           R"(font-size="12" fill="#666")");
  draw_table(svg, points);
  std::string notes = "Marks above the slanted roof read from caches.";
  if (std::any_of(points.begin(), points.end(),
                  [](const RooflinePoint& point) { return point.error > kDoubtful; }))
    notes += " Hollow: not known to 5 %.";
  if (roofline.points.size() > points.size())
    notes +=
        fmt::format(" {} more shapes are in scaling.json.", roofline.points.size() - points.size());
  svg.text(24 + 36, kTable + kRow * lines + 6, notes, R"(font-size="12" fill="#666")");
  return svg.file();
}

}  // namespace t3d
