#include "record/study/study_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/counted.hpp"
#include "record/log/svg.hpp"

namespace t3d {
namespace {

constexpr int kWidth = 900, kHeight = 430;
constexpr SvgFrame kLeft{70, 56, 350, 290}, kRight{520, 56, 350, 290};
constexpr const char* kSmall = R"(font-size="11")";
constexpr const char* kBlue = "#0072b2";
constexpr const char* kOrange = "#d55e00";
constexpr const char* kGreen = "#009e73";
constexpr const char* kGrey = "#777777";
constexpr double kDot = 4;  // half a side

/// Ranks on a scale of powers of two; each number of ranks has a tick.
class RankAxis {
 public:
  RankAxis(const StudyFigures& study, const SvgFrame& frame) : frame_(frame) {
    for (const PointFigures& point : study.points) ranks_.insert(point.ranks);
    if (ranks_.empty()) ranks_.insert(1);
    low_ = std::log2(static_cast<double>(*ranks_.begin())) - 0.3;
    high_ = std::log2(static_cast<double>(*ranks_.rbegin())) + 0.3;
  }
  [[nodiscard]] double at(double ranks) const {
    return frame_.left + (std::log2(ranks) - low_) / (high_ - low_) * frame_.width;
  }
  [[nodiscard]] index_t least() const { return *ranks_.begin(); }
  [[nodiscard]] index_t most() const { return *ranks_.rbegin(); }
  void draw(Svg& svg) const {
    double last = -1e9;
    for (const index_t ranks : ranks_) {
      const double x = at(static_cast<double>(ranks));
      svg.line(x, frame_.bottom(), x, frame_.bottom() + 4, R"(stroke="#333")");
      if (x - last < 22) continue;  // no room for its number
      svg.text(x, frame_.bottom() + 18, fmt::format("{}", ranks),
               R"(font-size="11" text-anchor="middle")");
      last = x;
    }
    svg.text((frame_.left + frame_.right()) / 2, frame_.bottom() + 36, "ranks",
             R"(font-size="12" text-anchor="middle")");
  }

 private:
  SvgFrame frame_;
  std::set<index_t> ranks_;
  double low_ = 0, high_ = 1;
};

/// Speed-up on a scale of powers of two.
class SpeedAxis {
 public:
  SpeedAxis(const StudyFigures& study, const RankAxis& ranks) {
    double least = static_cast<double>(ranks.least()), most = static_cast<double>(ranks.most());
    for (const PointFigures& point : study.points) {
      if (point.missing) continue;
      least = std::min(least, point.speed_up.low);
      most = std::max(most, point.speed_up.high);
    }
    low_ = std::floor(std::log2(least) - 0.05);
    high_ = std::ceil(std::log2(most) + 0.05);
  }
  [[nodiscard]] double at(double speed_up) const {
    return kLeft.bottom() - (std::log2(speed_up) - low_) / (high_ - low_) * kLeft.height;
  }
  void draw(Svg& svg, const char* name) const {
    const double apart = std::max(1.0, std::ceil((high_ - low_) / 8));
    for (double power = low_; power <= high_; power += apart) {
      const double y = at(std::exp2(power));
      svg.line(kLeft.left, y, kLeft.right(), y, R"(stroke="#e4e4e4")");
      svg.text(kLeft.left - 6, y + 4, fmt::format("{:g}", std::exp2(power)),
               R"(font-size="11" text-anchor="end")");
    }
    const double y = kLeft.top + kLeft.height / 2;
    svg.text(18, y, name,
             fmt::format(R"x(font-size="12" text-anchor="middle" transform="rotate(-90 18.0 {})")x",
                         pixels(y)));
  }

 private:
  double low_ = 0, high_ = 1;
};

/// Filled, or hollow where times are not those of cores of their own.
void draw_dot(Svg& svg, double x, double y, const PointFigures& point, const char* colour,
              const std::string& tip) {
  const bool hollow = point.shared_cores || point.emulated;
  svg.rect(
      {x - kDot, y - kDot, 2 * kDot, 2 * kDot},
      fmt::format(R"(fill="{}" stroke="{}" stroke-width="1.5")", hollow ? "white" : colour, colour),
      tip);
}

/// From low to high with a short line at both ends.
void draw_bar(Svg& svg, double x, double low, double high, const char* colour) {
  const std::string stroke = fmt::format(R"(stroke="{}" stroke-width="1.2")", colour);
  svg.line(x, low, x, high, stroke);
  svg.line(x - 3, low, x + 3, low, stroke);
  svg.line(x - 3, high, x + 3, high, stroke);
}

std::string tip_of(const PointFigures& point) {
  std::string text =
      fmt::format("{}, {}: {:.4g} ms ({:.4g} to {:.4g}), speed-up {:.2f}, efficiency {:.1f} %",
                  counted(point.ranks, "rank"), point.shape, 1e3 * point.seconds.middle,
                  1e3 * point.seconds.low, 1e3 * point.seconds.high, point.speed_up.middle,
                  100 * point.efficiency.middle);
  return point.marks().empty() ? text : text + "; " + point.marks();
}

/// The fastest point of each number of ranks, by ranks.
std::vector<const PointFigures*> fastest(const StudyFigures& study) {
  std::vector<const PointFigures*> line;
  for (const PointFigures& point : study.points) {
    if (point.missing) continue;
    if (line.empty() || line.back()->ranks != point.ranks)
      line.push_back(&point);
    else if (point.rate.middle > line.back()->rate.middle)
      line.back() = &point;
  }
  return line;
}

void draw_planned(Svg& svg, const StudyFigures& study, const RankAxis& ranks,
                  const SpeedAxis& speed) {
  if (!study.base) return;
  const PointFigures& base = study.points[*study.base];
  const double base_rate = base.rate.middle * base.seconds.middle / base.predicted_seconds;
  SvgPoints points;
  for (const PointFigures* point : fastest(study)) {
    const double rate = point->rate.middle * point->seconds.middle / point->predicted_seconds;
    const double planned = static_cast<double>(base.ranks) * rate / base_rate;
    if (std::isfinite(planned))
      points.emplace_back(ranks.at(static_cast<double>(point->ranks)), speed.at(planned));
  }
  if (points.empty()) return;
  svg.polyline(points,
               fmt::format(R"(stroke="{}" stroke-width="1.5" stroke-dasharray="2 3")", kOrange),
               "planned (hetero.cluster)");
  svg.text(kLeft.left + 10, kLeft.top + 30, "dotted: planned by hetero.cluster",
           fmt::format(R"(font-size="11" fill="{}")", kOrange));
}

void draw_missing(Svg& svg, const StudyFigures& study, const RankAxis& ranks) {
  for (const PointFigures& point : study.points) {
    if (!point.missing) continue;
    const double x = ranks.at(static_cast<double>(point.ranks)), y = kLeft.bottom() - 10;
    const std::string stroke = fmt::format(R"(stroke="{}" stroke-width="1.5")", kGrey);
    svg.line(x - kDot, y - kDot, x + kDot, y + kDot, stroke, point.name + " is missing");
    svg.line(x - kDot, y + kDot, x + kDot, y - kDot, stroke);
    svg.text(x, y - 9, "missing",
             fmt::format(R"(font-size="11" text-anchor="middle" fill="{}")", kGrey));
  }
}

void draw_speed_up(Svg& svg, const StudyFigures& study) {
  const RankAxis ranks(study, kLeft);
  const SpeedAxis speed(study, ranks);
  speed.draw(svg, study.weak ? "scaled speed-up" : "speed-up");
  ranks.draw(svg);
  const auto least = static_cast<double>(ranks.least()), most = static_cast<double>(ranks.most());
  svg.line(ranks.at(least), speed.at(least), ranks.at(most), speed.at(most),
           fmt::format(R"(stroke="{}" stroke-width="1" stroke-dasharray="6 4")", kGrey), "ideal");
  svg.text(kLeft.left + 10, kLeft.top + 14, "dashed: ideal",
           fmt::format(R"(font-size="11" fill="{}")", kGrey));
  draw_planned(svg, study, ranks, speed);
  SvgPoints line;
  for (const PointFigures* point : fastest(study))
    line.emplace_back(ranks.at(static_cast<double>(point->ranks)),
                      speed.at(point->speed_up.middle));
  svg.polyline(line, fmt::format(R"(stroke="{}" stroke-width="1.5")", kBlue));
  for (const PointFigures& point : study.points) {
    if (point.missing) continue;
    const double x = ranks.at(static_cast<double>(point.ranks));
    draw_bar(svg, x, speed.at(point.speed_up.low), speed.at(point.speed_up.high), kBlue);
    draw_dot(svg, x, speed.at(point.speed_up.middle), point, kBlue, tip_of(point));
  }
  draw_missing(svg, study, ranks);
}

/// One share of the right panel, with its name.
void draw_share(Svg& svg, const StudyFigures& study, const SvgAxis& percent, double name_at,
                const char* colour, const char* name, double (*share)(const PointFigures&)) {
  const RankAxis ranks(study, kRight);
  SvgPoints line;
  for (const PointFigures* point : fastest(study))
    if (std::isfinite(share(*point)))
      line.emplace_back(ranks.at(static_cast<double>(point->ranks)),
                        percent.at(100 * share(*point)));
  if (line.empty()) return;
  svg.polyline(line, fmt::format(R"(stroke="{}" stroke-width="1.5")", colour), name);
  for (const PointFigures& point : study.points)
    if (!point.missing && std::isfinite(share(point)))
      draw_dot(svg, ranks.at(static_cast<double>(point.ranks)), percent.at(100 * share(point)),
               point, colour, fmt::format("{}: {:.1f} %", name, 100 * share(point)));
  svg.rect({name_at, kRight.top - 15, 8, 8}, fmt::format(R"(fill="{}")", colour));
  svg.text(name_at + 12, kRight.top - 7, name, kSmall);
}

void draw_shares(Svg& svg, const StudyFigures& study) {
  double most = 100;
  for (const PointFigures& point : study.points) {
    for (const double share : {point.efficiency.high, point.imbalance, point.comm_fraction})
      if (std::isfinite(share)) most = std::max(most, 100 * share);
  }
  SvgAxis percent = upward_axis(kRight, most, 5);
  for (const double tick : percent.ticks) {
    svg.line(kRight.left, percent.at(tick), kRight.right(), percent.at(tick),
             R"(stroke="#e4e4e4")");
    svg.text(kRight.left - 6, percent.at(tick) + 4, fmt::format("{:g} %", tick),
             R"(font-size="11" text-anchor="end")");
  }
  const RankAxis ranks(study, kRight);
  ranks.draw(svg);
  for (const PointFigures& point : study.points)
    if (!point.missing)
      draw_bar(svg, ranks.at(static_cast<double>(point.ranks)),
               percent.at(100 * point.efficiency.low), percent.at(100 * point.efficiency.high),
               kBlue);
  draw_share(svg, study, percent, kRight.left, kBlue, "efficiency",
             [](const PointFigures& point) { return point.efficiency.middle; });
  draw_share(svg, study, percent, kRight.left + 90, kOrange, "waiting for others (rank 0)",
             [](const PointFigures& point) { return point.comm_fraction; });
  draw_share(svg, study, percent, kRight.left + 255, kGreen, "imbalance",
             [](const PointFigures& point) { return point.imbalance; });
}

std::string footnote(const StudyFigures& study) {
  std::string text = "bars: least to largest of the repeats";
  bool shared = false, emulated = false, replaced = false;
  for (const PointFigures& point : study.points) {
    replaced = replaced || point.other_program;
    shared = shared || point.shared_cores;
    emulated = emulated || point.emulated;
  }
  if (shared || emulated)
    text += fmt::format("; hollow: {}{}{}", shared ? "shared cores" : "",
                        shared && emulated ? ", " : "", emulated ? "emulated" : "");
  if (replaced) text += "; several programs";
  return study.machine.empty() ? text : text + "; " + study.machine;
}

}  // namespace

std::string study_plot(const StudyFigures& study) {
  Svg svg(kWidth, kHeight);
  svg.text(kLeft.left, 24,
           fmt::format("{}: {} scaling", study.title, study.weak ? "weak" : "strong"),
           R"(font-size="15")");
  draw_speed_up(svg, study);
  draw_shares(svg, study);
  svg.text(kLeft.left, kHeight - 12, footnote(study), kSmall);
  return svg.file();
}

}  // namespace t3d
