#include "record/log/rank_plot.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <numeric>

#include "core/utf8.hpp"

namespace t3d {
namespace {

// Colours that stay apart for colour-blind readers (Okabe and Ito 2008; yellow, too pale on white,
// and black, the step's, replaced). Of more ranks than colours the second half is dotted.
constexpr std::array kRankColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                  "#56b4e9", "#e69f00", "#882255", "#888888"};
constexpr const char* kSmall = R"(font-size="11")";
constexpr double kLegendLeft = 728, kRightEdge = 894;

struct Unit {
  double per_second = 1000;
  const char* name = "ms";
};

/// Three digits or more: "0.0123 ms", "12.3 ms", "1234 ms".
std::string in_unit(double time, Unit unit) {
  return fmt::format(fmt::runtime(time < 100 ? "{:.3g} {}" : "{:.0f} {}"), time, unit.name);
}

/// A part of a bar.
struct Part {
  const char* name;
  const char* colour;
  double RankTimes::*time;  // none: waiting
};
constexpr std::array<Part, 4> kParts{{{"matmul", "#0072b2", &RankTimes::matmul},
                                      {"attention", "#e69f00", &RankTimes::attention},
                                      {"other", "#009e73", &RankTimes::other},
                                      {"waiting", "#d8d8d8", nullptr}}};

double time_of(const Part& part, const RankTimes& times, double step_seconds) {
  return part.time != nullptr ? times.*part.time : std::max(step_seconds - times.own, 0.0);
}

/// The upper panel.
class StepsPanel {
 public:
  StepsPanel(Svg& svg, const RankHistory& history, Unit unit)
      : svg_(svg), history_(history), unit_(unit) {
    auto first = static_cast<double>(history.first_step());
    auto last = static_cast<double>(history.last_step());
    if (first == last) {
      first -= 0.5;
      last += 0.5;
    }
    x_ = {first, last, frame_.left, frame_.right(), round_ticks(first, last, 8, 1)};
    y_ = upward_axis(frame_, 1.02 * unit_.per_second * top_seconds(), 5);
  }

  void draw() {
    draw_axes();
    draw_marks();
    svg_.clip(frame_, "steps");
    const bool lines = history_.ranks() <= kMostLines;
    lines ? draw_lines() : draw_band();
    const std::vector<SpreadPoint>& points = history_.spread();
    svg_.polyline(course(points, [](const SpreadPoint& point) { return point.seconds; }),
                  kStepStyle, "whole step");
    svg_.unclip();
    svg_.rect(frame_, R"(fill="none" stroke="#555")");
    draw_legend(lines);
  }

 private:
  static constexpr const char* kStepStyle =
      R"(stroke="#000" stroke-width="1.4" stroke-dasharray="7 4" stroke-linecap="round")";
  static constexpr const char* kMarkStyle = R"(stroke="#555" stroke-dasharray="1 2")";
  static constexpr const char* kBandStyle = R"(fill="#56b4e9" fill-opacity="0.35")";
  static constexpr const char* kMedianStyle = R"(stroke="#0072b2" stroke-width="1.6")";

  static std::string rank_style(std::size_t rank) {
    return fmt::format(
        R"(stroke="{}" stroke-width="{}"{} stroke-linejoin="round" stroke-linecap="round")",
        kRankColours.at(rank % kRankColours.size()), rank < kRankColours.size() ? 1.6 : 2.0,
        rank < kRankColours.size() ? "" : R"( stroke-dasharray="0.1 4")");
  }

  // The longest, but for a few that would press all others to the ground: those of the first steps,
  // say.
  [[nodiscard]] double top_seconds() {
    std::vector<double> seconds;
    for (const SpreadPoint& point : history_.spread())
      seconds.push_back(std::max(point.seconds, point.most));
    std::sort(seconds.begin(), seconds.end());
    const double usual = 2 * seconds[(seconds.size() - 1) * 95 / 100];
    const auto beyond = std::upper_bound(seconds.begin(), seconds.end(), usual);
    beyond_ = seconds.end() - beyond;
    return *(beyond - 1);
  }

  template <typename Point, typename Seconds>
  [[nodiscard]] SvgPoints course(const std::vector<Point>& points, Seconds seconds) const {
    SvgPoints line;
    for (const Point& point : points)
      line.emplace_back(x_.at(point.step), y_.at(unit_.per_second * seconds(point)));
    if (line.size() == 1) line = {{frame_.left, line[0].second}, {frame_.right(), line[0].second}};
    return line;
  }

  void draw_axes() {
    draw_upward_axis(svg_, frame_, y_, fmt::format("own time, {} per step", unit_.name));
    for (const double tick : x_.ticks) {
      const double x = x_.at(tick);
      svg_.line(x, frame_.bottom(), x, frame_.bottom() + 4, R"(stroke="#555")");
      svg_.text(x, frame_.bottom() + 17, fmt::format("{:.12g}", tick),
                R"(font-size="11" text-anchor="middle")");
    }
    svg_.text(frame_.left + frame_.width / 2, frame_.bottom() + 33, "step",
              R"(font-size="12" text-anchor="middle")");
    if (beyond_ > 0)
      svg_.text(frame_.right(), frame_.bottom() + 33,
                fmt::format("{} longer than shown, up to {}",
                            beyond_ == 1 ? "one point is" : fmt::format("{} points are", beyond_),
                            in_unit(unit_.per_second * longest(), unit_)),
                R"(font-size="11" text-anchor="end" fill="#555")");
  }

  [[nodiscard]] double longest() const {
    double most = 0;
    for (const SpreadPoint& point : history_.spread())
      most = std::max({most, point.seconds, point.most});
    return most;
  }

  // Texts stand above the panel, in the lowest of three rows where they meet neither texts nor
  // lines of later changes; where there is no room the line stays without (browsers show its text
  // when pointed at).
  void draw_marks() {
    struct Placed {
      double left;
      int row;  // -1: without text
    };
    std::vector<Placed> later;
    for (auto mark = history_.marks().rbegin(); mark != history_.marks().rend(); ++mark) {
      const double x = x_.at(static_cast<double>(mark->step));
      if (x < frame_.left || x > frame_.right()) continue;
      const std::string text = printable(mark->text, 56);
      const double width = 6.3 * static_cast<double>(text.size()) + 6;
      const double left = std::min(x, kRightEdge - width);
      int row = 0;
      for (const Placed& other : later)
        if (other.left < left + width) row = std::max(row, other.row + 1);
      if (row > 2) row = -1;
      later.push_back({row < 0 ? x : left, row});
      const double base = frame_.top - 4 - 13 * row;
      if (row >= 0) svg_.text(left + 3, base, text, kSmall);
      // A text moved to the left stands over its line, not beside it.
      svg_.line(x,
                row < 0    ? frame_.top
                : left < x ? base + 3
                           : base - 9,
                x, frame_.bottom(), kMarkStyle, fmt::format("step {}: {}", mark->step, mark->text));
    }
  }

  void draw_lines() {
    for (std::size_t rank = 0; rank < history_.ranks(); ++rank)
      svg_.polyline(
          course(history_.by_rank(), [&](const RankPoint& point) { return point.ranks[rank].own; }),
          rank_style(rank), fmt::format("rank {}", rank));
  }

  void draw_band() {
    const std::vector<SpreadPoint>& points = history_.spread();
    SvgPoints band = course(points, [](const SpreadPoint& point) { return point.most; });
    const SvgPoints least = course(points, [](const SpreadPoint& point) { return point.least; });
    band.insert(band.end(), least.rbegin(), least.rend());
    svg_.polygon(band, kBandStyle, "fastest to slowest rank");
    svg_.polyline(course(points, [](const SpreadPoint& point) { return point.median; }),
                  kMedianStyle, "median rank");
  }

  void draw_legend(bool lines) {
    double y = frame_.top + 10;
    const auto entry = [&](double x, std::string_view style, const std::string& name) {
      svg_.line(x, y - 4, x + 22, y - 4, style);
      svg_.text(x + 28, y, name, kSmall);
    };
    entry(kLegendLeft, kStepStyle, "whole step");
    y += 18;
    if (const auto changes = std::ssize(history_.marks()) + history_.marks_dropped(); changes > 0) {
      entry(kLegendLeft, R"(stroke="#555" stroke-width="1.5" stroke-dasharray="1 2")",
            changes == 1 ? "change of plan" : fmt::format("changes of plan: {}", changes));
      y += 18;
    }
    if (!lines) {
      svg_.rect({kLegendLeft, y - 9, 22, 10}, kBandStyle);
      svg_.text(kLegendLeft + 28, y, fmt::format("all {} ranks", history_.ranks()), kSmall);
      y += 18;
      entry(kLegendLeft, kMedianStyle, "median rank");
      y += 18;
      svg_.text(kLegendLeft, y, "slowest at the end:", kSmall);
      svg_.text(kLegendLeft + 28, y + 14, fmt::format("rank {}", history_.spread().back().slowest),
                kSmall);
      return;
    }
    const double top = y;
    for (std::size_t rank = 0; rank < history_.ranks(); ++rank) {
      const std::size_t column = rank / kRankColours.size();
      if (rank % kRankColours.size() == 0) y = top;
      entry(kLegendLeft + 84 * static_cast<double>(column), rank_style(rank),
            fmt::format("rank {}", rank));
      y += 18;
    }
  }

  Svg& svg_;
  const RankHistory& history_;
  Unit unit_;
  SvgFrame frame_ = kStepsFrame;
  SvgAxis x_, y_;
  std::ptrdiff_t beyond_ = 0;  // points above the frame
};

/// The ranks that get a bar: all in their order, or kMostBars from the fastest to the slowest.
std::vector<std::size_t> bar_ranks(const RankPoint& mean) {
  std::vector<std::size_t> ranks(mean.ranks.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  if (ranks.size() <= kMostBars) return ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [&](std::size_t a, std::size_t b) {
    return mean.ranks[a].own < mean.ranks[b].own;
  });
  std::vector<std::size_t> some;
  for (std::size_t bar = 0; bar < kMostBars; ++bar)
    some.push_back(ranks[bar * (ranks.size() - 1) / (kMostBars - 1)]);
  return some;
}

void draw_bars_legend(Svg& svg) {
  double y = kBarsFrame.top + 10;
  for (auto part = kParts.rbegin(); part != kParts.rend(); ++part, y += 18) {
    svg.rect({kLegendLeft, y - 9, 12, 10}, fmt::format(R"(fill="{}")", part->colour));
    svg.text(kLegendLeft + 28, y, part->name, kSmall);
  }
}

/// The lower panel.
void draw_bars(Svg& svg, const RankHistory& history, Unit unit) {
  const SvgFrame& frame = kBarsFrame;
  const RankPoint mean = last_third(history);
  const std::vector<std::size_t> ranks = bar_ranks(mean);
  double most = mean.seconds;
  for (const RankTimes& times : mean.ranks) most = std::max(most, times.own);
  const SvgAxis y = upward_axis(frame, unit.per_second * most, 4);
  draw_upward_axis(svg, frame, y, fmt::format("{} per step", unit.name));

  const double slot = frame.width / static_cast<double>(ranks.size());
  const double width = std::min(0.8 * slot, 60.0);
  const std::size_t digits = std::to_string(mean.ranks.size() - 1).size();
  const double label = static_cast<double>(7 * digits + 5);
  const auto every = static_cast<std::size_t>(std::ceil(label / slot));
  for (std::size_t bar = 0; bar < ranks.size(); ++bar) {
    const double middle = frame.left + slot * (static_cast<double>(bar) + 0.5);
    double sum = 0;
    for (const Part& part : kParts) {
      const double time = unit.per_second * time_of(part, mean.ranks[ranks[bar]], mean.seconds);
      if (time <= 0) continue;
      const double top = y.at(sum + time);
      svg.rect({middle - width / 2, top, width, y.at(sum) - top},
               fmt::format(R"(fill="{}")", part.colour),
               fmt::format("rank {}: {} {}", ranks[bar], part.name, in_unit(time, unit)));
      sum += time;
    }
    if (bar % every == 0)
      svg.text(middle, frame.bottom() + 15, fmt::format("{}", ranks[bar]),
               R"(font-size="11" text-anchor="middle")");
  }
  svg.line(frame.left, frame.bottom(), frame.right(), frame.bottom(), R"(stroke="#555")");
  svg.text(frame.left, frame.top - 9,
           "where the time of a step goes, mean of the last third of the run", R"(font-size="12")");
  svg.text(frame.left + frame.width / 2, frame.bottom() + 33,
           ranks.size() == mean.ranks.size()
               ? "rank"
               : fmt::format("rank: {} of {}, from the fastest to the slowest", ranks.size(),
                             mean.ranks.size()),
           R"(font-size="12" text-anchor="middle")");
  draw_bars_legend(svg);
}

}  // namespace

std::string rank_plot(const RankHistory& history, const std::string& title) {
  Svg svg(kPlotWidth, kPlotHeight);
  svg.text(kStepsFrame.left, 24, printable(title, 76) + (history.emulated() ? " (emulated)" : ""),
           R"(font-size="16" font-weight="bold")");
  if (history.ranks() == 0) {
    svg.text(kStepsFrame.left, 60, "no times of ranks were gathered", R"(font-size="12")");
    return svg.file();
  }
  std::vector<double> seconds;
  for (const SpreadPoint& point : history.spread()) seconds.push_back(point.seconds);
  const Unit unit = lower_median(std::move(seconds)) < 10 ? Unit{} : Unit{1, "s"};
  StepsPanel(svg, history, unit).draw();
  draw_bars(svg, history, unit);
  return svg.file();
}

}  // namespace t3d
