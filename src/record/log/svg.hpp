// Drawing for the program's own plots: shapes and texts as one standalone SVG file, and axes with
// round ticks. Lengths are pixels from the upper left corner.
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace t3d {

/// Text for the inside of an XML element or attribute: one line of UTF-8, escaped.
[[nodiscard]] std::string xml_text(std::string_view text);

/// Pixels, with one decimal: "-0.0" never appears.
[[nodiscard]] std::string pixels(double length);

struct SvgFrame {
  double left, top, width, height;
  [[nodiscard]] double right() const { return left + width; }
  [[nodiscard]] double bottom() const { return top + height; }
};

using SvgPoints = std::vector<std::pair<double, double>>;

/// `style` is a list of attributes, `stroke="#333" stroke-width="2"`; texts are escaped here.
class Svg {
 public:
  /// White, letters of any sans-serif font.
  Svg(int width, int height);
  void line(double x1, double y1, double x2, double y2, std::string_view style,
            std::string_view tip = {});
  void rect(const SvgFrame& frame, std::string_view style, std::string_view tip = {});
  void text(double x, double y, std::string_view text, std::string_view style);
  void polyline(const SvgPoints& points, std::string_view style, std::string_view tip = {});
  void polygon(const SvgPoints& points, std::string_view style, std::string_view tip = {});
  /// What is drawn until `unclip` shows inside the frame only.
  void clip(const SvgFrame& frame, std::string_view id);
  void unclip() { out_ += "</g>\n"; }
  /// The whole file.
  [[nodiscard]] std::string file() const { return out_ + "</svg>\n"; }

 private:
  void shape(const std::string& tag, std::string_view style, std::string_view tip);
  std::string out_;
};

/// Values `low` to `high` along pixels `from` to `to`.
struct SvgAxis {
  double low = 0, high = 1, from = 0, to = 1;
  std::vector<double> ticks;  // round numbers from low to high
  [[nodiscard]] double at(double value) const {
    return from + (value - low) / (high - low) * (to - from);
  }
};

/// About `count` ticks 1, 2 or 5 times a power of ten apart, never less than `least`; low < high.
[[nodiscard]] std::vector<double> round_ticks(double low, double high, int count, double least = 0);

/// From 0 at the frame's lower edge to a tick above `most`; about `count` ticks.
[[nodiscard]] SvgAxis upward_axis(const SvgFrame& frame, double most, int count);
/// Its lines and numbers, and its name on the left.
void draw_upward_axis(Svg& svg, const SvgFrame& frame, const SvgAxis& axis,
                      const std::string& name);

}  // namespace t3d
