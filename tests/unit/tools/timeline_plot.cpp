// The plot of a simulated life: what is where, however many events it has.
#include <fmt/format.h>

#include "support/catch.hpp"
#include "tools/simulate/simulation_report.hpp"

namespace t3d::test {
namespace {

using Stretch = Timeline::Stretch;

SimulatedJob two_sizes() {
  SimulatedJob job;
  job.classes = {{"a", 0, 1, Hazard(), 60}};
  job.sizes = {{"half & half", {4}, 2, 8}, {"whole", {8}, 1, 8}};
  return job;
}

TEST_CASE("parts, sizes and lost spans stand where they belong") {
  // 6,500 s on 650 pixels from 66 on.
  Timeline timeline;
  timeline.stretches = {{0, LifePart::useful, 1, 8, 8},
                        {3000, LifePart::restart, 0, 5, 4},
                        {3500, LifePart::useful, 0, 5, 4}};
  timeline.lost = {{1000, 3000}, {2500, 3000}};  // the second is in the first
  timeline.checkpoints = {1000};
  timeline.end = 6500;
  const std::string plot = timeline_plot(two_sizes(), timeline, "a < b");
  CHECK_THAT(plot, contains("a &lt; b"));
  CHECK_THAT(plot, contains("minutes since the start"));
  CHECK_THAT(plot, contains(R"(x="66.0" y="262.0" width="300.0" height="16.0")"));   // whole
  CHECK_THAT(plot, contains(R"(x="366.0" y="262.0" width="350.0" height="16.0")"));  // half
  CHECK_THAT(plot, contains("<title>half &amp; half</title>"));
  CHECK_THAT(plot, contains(R"(x="66.0" y="290.0" width="100.0" height="70.0" fill="#009e73")"));
  CHECK_THAT(plot, contains(R"(x="166.0" y="290.0" width="200.0" height="70.0" fill="#d55e00")"));
  CHECK_THAT(plot, contains(R"(x="366.0" y="290.0" width="50.0" height="70.0" fill="#e69f00")"));
  CHECK_THAT(plot, contains(R"(x="416.0" y="290.0" width="300.0" height="70.0" fill="#009e73")"));
  CHECK_THAT(plot, contains(R"(<line x1="166.0" y1="283.0" x2="166.0" y2="290.0")"));
}

TEST_CASE("a life of many events is no larger a file") {
  Timeline timeline;
  for (int at = 0; at < 200000; ++at) {
    timeline.stretches.push_back({double(at), at % 3 == 0 ? LifePart::reshape : LifePart::useful,
                                  at % 2, 8, 4 + 4 * (at % 2)});
    timeline.checkpoints.push_back(at);
    if (at % 7 == 0) timeline.lost.push_back({double(at), at + 0.5});
  }
  timeline.end = 200000;
  const std::string plot = timeline_plot(two_sizes(), timeline, "long");
  CHECK(plot.size() < 500000);
  CHECK_THAT(plot, contains("200000 checkpoints"));
  CHECK(timeline_plot(two_sizes(), Timeline(), "nothing").size() < 20000);
}

}  // namespace
}  // namespace t3d::test
