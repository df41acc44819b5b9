// Hours and cost of all options, as a plot.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/counted.hpp"
#include "record/log/svg.hpp"
#include "tools/plan/plan_report.hpp"

namespace t3d {
namespace {

/// Half of its lives end.
bool is_shown(const JobOption& one) {
  return std::isfinite(one.hours.middle) && std::isfinite(one.cost.middle);
}

/// The largest number that is one; 1 where there is none.
double most_of(const std::vector<JobOption>& options, Interval JobOption::*of) {
  double most = 0;
  for (const JobOption& one : options)
    for (const double value : {(one.*of).middle, (one.*of).high})
      if (is_shown(one) && std::isfinite(value)) most = std::max(most, value);
  return most > 0 ? most : 1;
}

}  // namespace

std::string plan_plot(const PlanReport& report) {
  constexpr int kWidth = 720, kHeight = 430;
  constexpr SvgFrame kFrame{80, 50, 600, 310};
  constexpr const char* kSmall = R"(font-size="11")";
  const double most_hours = 1.02 * most_of(report.options, &JobOption::hours),
               most_cost = most_of(report.options, &JobOption::cost);
  Svg svg(kWidth, kHeight);
  svg.text(kFrame.left, 24,
           fmt::format("{}: hours and cost of {}", report.wish.name,
                       counted(report.options.size(), "set of nodes", "sets of nodes")),
           R"(font-size="15")");
  const SvgAxis cost = upward_axis(kFrame, most_cost, 5);
  const std::string currency = report.options.front().job.currency;
  draw_upward_axis(svg, kFrame, cost, currency);
  const std::vector<double> ticks = round_ticks(0, most_hours, 6);
  const SvgAxis hours{0, most_hours, kFrame.left, kFrame.right(), ticks};
  for (const double tick : ticks) {
    svg.line(hours.at(tick), kFrame.bottom(), hours.at(tick), kFrame.bottom() + 4,
             R"(stroke="#333")");
    svg.text(hours.at(tick), kFrame.bottom() + 18, fmt::format("{:g}", tick),
             R"(font-size="11" text-anchor="middle")");
  }
  svg.text((kFrame.left + kFrame.right()) / 2, kFrame.bottom() + 38, "hours until it is done",
           R"(font-size="12" text-anchor="middle")");
  SvgPoints front;
  for (const JobOption& one : report.options)
    if (one.on_front && is_shown(one))
      front.emplace_back(hours.at(one.hours.middle), cost.at(one.cost.middle));
  svg.polyline(front, R"(fill="none" stroke="#0072b2" stroke-width="1.5")", "the front");
  for (std::size_t at = 0; at < report.options.size(); ++at) {
    const JobOption& one = report.options[at];
    if (!is_shown(one)) continue;
    const double x = hours.at(one.hours.middle), y = cost.at(one.cost.middle);
    const char* colour = one.on_front ? "#0072b2" : "#999999";
    const std::string stroke = fmt::format(R"(stroke="{}" stroke-width="1")", colour);
    // What does not end leaves the frame.
    svg.line(hours.at(one.hours.low), y, hours.at(std::min(one.hours.high, hours.high)), y, stroke);
    svg.line(x, cost.at(one.cost.low), x, cost.at(std::min(one.cost.high, cost.high)), stroke);
    const double size = at == report.chosen ? 5 : 3;
    const std::string what = fmt::format(
        "{}, {}: {}, {:.4g} {}", nodes_text(one.found.parts, report.cluster),
        mesh_text(one.found.plan), time_text(one.hours.middle), one.cost.middle, currency);
    svg.rect({x - size, y - size, 2 * size, 2 * size},
             fmt::format(R"(fill="{}")", at == report.chosen ? "#d55e00" : colour), what);
    if (one.on_front || at == report.chosen)
      svg.text(x + 8, y - 6, nodes_text(one.found.parts, report.cluster), kSmall);
  }
  std::string legend =
      "blue: nothing else is both sooner and cheaper; orange: chosen; bars: 90 % of lives";
  if (const auto hidden = std::ssize(report.options) -
                          std::count_if(report.options.begin(), report.options.end(), is_shown);
      hidden > 0)
    legend += fmt::format("; left out: {} on which half of the lives never end",
                          counted(hidden, "set of nodes", "sets of nodes"));
  svg.text(kFrame.left, kHeight - 10, legend, kSmall);
  return svg.file();
}

}  // namespace t3d
