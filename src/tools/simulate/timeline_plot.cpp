// The plot of one simulated life. Everything is put into columns of one pixel first, so that a life
// of a million events is no larger a file than a short one.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/utf8.hpp"
#include "record/log/svg.hpp"
#include "tools/simulate/simulation_report.hpp"

namespace t3d {
namespace {

constexpr int kWidth = 900, kHeight = 430;
constexpr SvgFrame kNodesFrame{66, 50, 650, 200}, kSizeFrame{66, 262, 650, 16},
    kPartsFrame{66, 290, 650, 70};
constexpr std::size_t kColumns = 650, kMostTicks = 300;
constexpr double kLegendLeft = 728;
constexpr const char* kSmall = R"(font-size="11")";
/// Colours of Okabe and Ito, as in the plots of runs.
constexpr std::array<const char*, kLifeParts> kPartColours{
    "#009e73", "#d55e00", "#0072b2", "#cc79a7", "#e69f00", "#d8d8d8", "#888888"};
constexpr std::array kSizeColours{"#c6dbef", "#9ecae1", "#6baed6", "#bcbddc",
                                  "#9e9ac8", "#c7e9c0", "#a1d99b", "#fdd0a2"};

struct PlotColumn {
  double seconds = 0, here = 0, used = 0;
  std::array<double, kLifeParts> parts{};
  std::map<int, double> sizes;

  [[nodiscard]] int size() const {
    int most = -1;
    double seconds_of_most = 0;
    for (const auto& [size, time] : sizes)
      if (time > seconds_of_most) {
        most = size;
        seconds_of_most = time;
      }
    return most;
  }
};

class TimelineColumns {
 public:
  explicit TimelineColumns(const Timeline& timeline)
      : width_(std::max(timeline.end, 1e-9) / double(kColumns)), columns_(kColumns) {
    for (std::size_t at = 0; at < timeline.stretches.size(); ++at) {
      const Timeline::Stretch& stretch = timeline.stretches[at];
      const bool last = at + 1 == timeline.stretches.size();
      add(stretch, stretch.seconds, last ? timeline.end : timeline.stretches[at + 1].seconds);
    }
    move_lost(timeline);
  }
  [[nodiscard]] const std::vector<PlotColumn>& columns() const { return columns_; }

 private:
  /// Calls `each(column, seconds)` for what of [from, to] lies in each column.
  template <class Each>
  void in_columns(double from, double to, const Each& each) {
    auto at = static_cast<std::size_t>(std::max(from / width_, 0.0));
    for (; at < kColumns && double(at) * width_ < to; ++at) {
      const double seconds =
          std::min(to, double(at + 1) * width_) - std::max(from, double(at) * width_);
      if (seconds > 0) each(columns_[at], seconds);
    }
  }

  void add(const Timeline::Stretch& stretch, double from, double to) {
    in_columns(from, to, [&](PlotColumn& column, double seconds) {
      column.seconds += seconds;
      column.here += seconds * double(stretch.here);
      column.used += seconds * double(stretch.used);
      column.parts[static_cast<std::size_t>(stretch.part)] += seconds;
      if (stretch.used > 0) column.sizes[stretch.size] += seconds;
    });
  }

  /// Of training in a lost span nothing counts.
  void move_lost(const Timeline& timeline) {
    std::vector<Timeline::LostSpan> spans = timeline.lost;
    std::sort(spans.begin(), spans.end(),
              [](const auto& a, const auto& b) { return a.from < b.from; });
    double done = 0;
    std::size_t at = 0;
    for (const Timeline::LostSpan& span : spans) {
      const double from = std::max(span.from, done);
      // Stretches ascend, and so do the spans.
      while (at > 0 && timeline.stretches[at].seconds > from) --at;
      for (; at < timeline.stretches.size() && timeline.stretches[at].seconds < span.to; ++at) {
        if (timeline.stretches[at].part != LifePart::useful) continue;
        const bool last = at + 1 == timeline.stretches.size();
        const double end = last ? timeline.end : timeline.stretches[at + 1].seconds;
        in_columns(std::max(from, timeline.stretches[at].seconds), std::min(end, span.to),
                   [](PlotColumn& column, double seconds) {
                     column.parts[static_cast<std::size_t>(LifePart::useful)] -= seconds;
                     column.parts[static_cast<std::size_t>(LifePart::lost)] += seconds;
                   });
      }
      if (at == timeline.stretches.size()) --at;
      done = std::max(done, span.to);
    }
  }

  double width_;
  std::vector<PlotColumn> columns_;
};

struct TimeUnit {
  double seconds = 3600;
  const char* name = "hours";
};
TimeUnit unit_of(double seconds) {
  if (seconds < 3 * 3600) return {60, "minutes"};
  if (seconds < 5 * 86400) return {3600, "hours"};
  return {86400, "days"};
}

/// Calls `each(first, behind)` for every run of columns that `same(a, b)` calls equal.
template <class Same, class Each>
void in_runs(std::size_t count, const Same& same, const Each& each) {
  for (std::size_t first = 0; first < count;) {
    std::size_t behind = first + 1;
    while (behind < count && same(first, behind)) ++behind;
    each(first, behind);
    first = behind;
  }
}

double x_of(std::size_t column) { return kNodesFrame.left + double(column); }

void draw_nodes(Svg& svg, const std::vector<PlotColumn>& columns) {
  double most = 1;
  for (const PlotColumn& column : columns)
    if (column.seconds > 0) most = std::max(most, column.here / column.seconds);
  const SvgAxis y = upward_axis(kNodesFrame, most, 5);
  draw_upward_axis(svg, kNodesFrame, y, "nodes");
  const auto course = [&](double PlotColumn::*sum) {
    SvgPoints points;
    const auto height = [&](std::size_t at) {
      return columns[at].seconds > 0 ? y.at(columns[at].*sum / columns[at].seconds) : y.at(0);
    };
    in_runs(
        columns.size(), [&](std::size_t a, std::size_t b) { return height(a) == height(b); },
        [&](std::size_t first, std::size_t behind) {
          points.emplace_back(x_of(first), height(first));
          points.emplace_back(x_of(behind), height(first));
        });
    return points;
  };
  SvgPoints area = course(&PlotColumn::here);
  area.emplace_back(kNodesFrame.right(), kNodesFrame.bottom());
  area.emplace_back(kNodesFrame.left, kNodesFrame.bottom());
  svg.polygon(area, R"(fill="#dddddd")", "nodes that the job has");
  svg.polyline(course(&PlotColumn::used), R"(stroke="#0072b2" stroke-width="1.4")", "nodes in use");
  svg.rect(kNodesFrame, R"(fill="none" stroke="#555")");
}

void draw_sizes(Svg& svg, const SimulatedJob& job, const std::vector<PlotColumn>& columns) {
  svg.text(kSizeFrame.left - 6, kSizeFrame.bottom() - 4, "size",
           R"(font-size="11" text-anchor="end")");
  in_runs(
      columns.size(),
      [&](std::size_t a, std::size_t b) { return columns[a].size() == columns[b].size(); },
      [&](std::size_t first, std::size_t behind) {
        const int size = columns[first].size();
        if (size < 0) return;
        const std::string& name = job.sizes[static_cast<std::size_t>(size)].name;
        const double width = double(behind - first);
        svg.rect({x_of(first), kSizeFrame.top, width, kSizeFrame.height},
                 fmt::format(R"(fill="{}")",
                             kSizeColours.at(static_cast<std::size_t>(size) % kSizeColours.size())),
                 name);
        if (6.2 * double(name.size()) + 4 < width)
          svg.text(x_of(first) + 3, kSizeFrame.bottom() - 4, name, R"(font-size="10")");
      });
  svg.rect(kSizeFrame, R"(fill="none" stroke="#555")");
}

void draw_parts(Svg& svg, const std::vector<PlotColumn>& columns) {
  const SvgFrame& frame = kPartsFrame;
  svg.text(16, frame.top + frame.height / 2, "time",
           fmt::format(R"x(font-size="12" text-anchor="middle" transform="rotate(-90 16 {})")x",
                       pixels(frame.top + frame.height / 2)));
  in_runs(
      columns.size(),
      [&](std::size_t a, std::size_t b) { return columns[a].parts == columns[b].parts; },
      [&](std::size_t first, std::size_t behind) {
        const PlotColumn& column = columns[first];
        double y = frame.bottom();
        for (std::size_t part = 0; part < kLifeParts && column.seconds > 0; ++part) {
          const double height = frame.height * column.parts[part] / column.seconds;
          if (height < 0.05) continue;
          y -= height;
          svg.rect({x_of(first), y, double(behind - first), height},
                   fmt::format(R"(fill="{}")", kPartColours[part]), Words<LifePart>::all[part]);
        }
      });
  svg.rect(frame, R"(fill="none" stroke="#555")");
}

void draw_checkpoints(Svg& svg, const Timeline& timeline, const SvgAxis& x) {
  if (timeline.checkpoints.size() > kMostTicks) return;
  for (const double seconds : timeline.checkpoints) {
    const double at = x.at(seconds);
    svg.line(at, kPartsFrame.top - 7, at, kPartsFrame.top, R"(stroke="#0072b2")", "checkpoint");
  }
}

void draw_time_axis(Svg& svg, const SvgAxis& x, const TimeUnit& unit) {
  const double y = kPartsFrame.bottom();
  for (const double tick : x.ticks) {
    const double at = x.at(tick * unit.seconds);
    svg.line(at, y, at, y + 4, R"(stroke="#555")");
    svg.text(at, y + 17, fmt::format("{:.9g}", tick), R"(font-size="11" text-anchor="middle")");
  }
  svg.text(kPartsFrame.left + kPartsFrame.width / 2, y + 34,
           fmt::format("{} since the start", unit.name), R"(font-size="12" text-anchor="middle")");
}

void draw_legend(Svg& svg, const Timeline& timeline) {
  double y = kNodesFrame.top + 10;
  const auto box = [&](const char* colour, const std::string& name) {
    svg.rect({kLegendLeft, y - 9, 12, 10}, fmt::format(R"(fill="{}")", colour));
    svg.text(kLegendLeft + 20, y, name, kSmall);
    y += 17;
  };
  box("#dddddd", "nodes of the job");
  svg.line(kLegendLeft, y - 4, kLegendLeft + 12, y - 4, R"(stroke="#0072b2" stroke-width="1.4")");
  svg.text(kLegendLeft + 20, y, "nodes in use", kSmall);
  y = kPartsFrame.top - 40;
  svg.text(kLegendLeft, y,
           timeline.checkpoints.size() > kMostTicks
               ? fmt::format("{} checkpoints", timeline.checkpoints.size())
               : "ticks: checkpoints",
           kSmall);
  y += 20;
  for (std::size_t part = 0; part < kLifeParts; ++part)
    box(kPartColours[part], std::string(Words<LifePart>::all[part]));
}

}  // namespace

std::string timeline_plot(const SimulatedJob& job, const Timeline& timeline,
                          const std::string& title) {
  Svg svg(kWidth, kHeight);
  svg.text(kNodesFrame.left, 26, printable(title, 90), R"(font-size="15" font-weight="bold")");
  const TimeUnit unit = unit_of(timeline.end);
  const double end = std::max(timeline.end, 1e-6);
  const SvgAxis x{0, end, kNodesFrame.left, kNodesFrame.right(),
                  round_ticks(0, end / unit.seconds, 10)};
  const TimelineColumns columns(timeline);
  draw_nodes(svg, columns.columns());
  draw_sizes(svg, job, columns.columns());
  draw_parts(svg, columns.columns());
  draw_checkpoints(svg, timeline, x);
  draw_time_axis(svg, x, unit);
  draw_legend(svg, timeline);
  return svg.file();
}

}  // namespace t3d
