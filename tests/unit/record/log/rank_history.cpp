// The course of a run by rank: means of neighbours, bounded memory, spread over the ranks.
#include "record/log/rank_history.hpp"

#include "core/error.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

RankTimes times_of(double own) { return {own, own, 0.5 * own, 0.25 * own, 0.25 * own}; }

std::vector<RankTimes> all_of(std::initializer_list<double> own) {
  std::vector<RankTimes> times;
  for (const double seconds : own) times.push_back(times_of(seconds));
  return times;
}

}  // namespace

TEST_CASE("few steps are kept as they are") {
  RankHistory history;
  history.add(9, 0.5, {});
  CHECK(history.ranks() == 0);
  history.add(10, 0.4, all_of({0.1, 0.3, 0.2, 0}));
  history.add(12, 0.6, all_of({0.1, 0.2, 0.5, 0}));
  CHECK(history.ranks() == 4);
  CHECK(history.first_step() == 10);
  CHECK(history.last_step() == 12);
  REQUIRE(history.spread().size() == 2);
  const SpreadPoint& point = history.spread()[1];
  CHECK(point.step == 12);
  CHECK(point.seconds == 0.6);
  CHECK(point.least == 0.1);  // the rank without work does not count
  CHECK(point.median == 0.2);
  CHECK(point.most == 0.5);
  CHECK(point.slowest == 2);
  CHECK(history.spread()[0].slowest == 1);
  CHECK(history.by_rank()[0].ranks[1].matmul == 0.15);
  CHECK_THROWS_AS(history.add(13, 0.6, all_of({0.1})), Error);
  // Means of what is known of one step only would read what is not there.
  CHECK_THROWS_AS(history.add(13, 0.6, all_of({0.1, 0.2, 0.3, 0}), std::vector<RankLoad>(4)),
                  Error);
}

TEST_CASE("long runs keep their whole course as means of neighbours") {
  const index_t steps = 10000;
  RankHistory history;
  for (index_t step = 1; step <= steps; ++step)
    history.add(step, 2e-3 * static_cast<double>(step),
                all_of({1e-3 * static_cast<double>(step), 0.5}));
  const std::vector<RankPoint>& points = history.by_rank();
  REQUIRE(points.size() == history.spread().size());
  CHECK(points.size() == 313);  // 32 steps each, 10000 / 32 = 312.5
  index_t covered = 0;
  for (std::size_t at = 0; at < points.size(); ++at) {
    CHECK(points[at].steps == (at + 1 < points.size() ? 32 : 16));
    const double middle =
        static_cast<double>(covered) + 0.5 * static_cast<double>(1 + points[at].steps);
    CHECK(points[at].step == Approx(middle));
    CHECK(points[at].seconds == Approx(2e-3 * middle));
    CHECK(points[at].ranks[0].own == Approx(1e-3 * middle));
    CHECK(points[at].ranks[0].attention == Approx(0.25e-3 * middle));
    CHECK(points[at].ranks[1].cpu == Approx(0.5));
    CHECK(history.spread()[at].step == Approx(middle));
    covered += points[at].steps;
  }
  CHECK(covered == steps);
  CHECK(history.spread().front().slowest == 1);
  CHECK(history.spread().back().slowest == 0);
  CHECK(history.spread().back().least == Approx(0.5));
}

TEST_CASE("more ranks have fewer points of their own, and the same spread") {
  const auto points_of = [](std::size_t ranks) {
    RankHistory history;
    for (index_t step = 1; step <= 700; ++step)
      history.add(step, 1,
                  std::vector<RankTimes>(ranks, times_of(1e-3 * static_cast<double>(step))));
    CHECK(history.spread().size() == 350);
    CHECK(history.spread().back().median == Approx(0.6995));
    // 700 steps run from 1 ms to 700 ms: the last third has a mean near 583 ms.
    CHECK(last_third(history).ranks.back().own == Approx(0.584).margin(0.06));
    return history.by_rank().size();
  };
  CHECK(points_of(64) == 350);
  CHECK(points_of(128) == 175);  // at most 300: four steps each
  CHECK(points_of(4096) <= 8);
  CHECK(points_of(20000) <= 6);
}

TEST_CASE("the last third of a run") {
  RankHistory history;
  for (index_t step = 1; step <= 31; ++step)
    history.add(step, step > 21 ? 4 : 100, all_of({step > 21 ? 3.0 : 100.0, 1}));
  const RankPoint mean = last_third(history);
  CHECK(mean.steps == 10);
  CHECK(mean.seconds == Approx(4));
  CHECK(mean.ranks[0].own == Approx(3));
  CHECK(mean.ranks[1].matmul == Approx(0.5));
  CHECK(last_third(RankHistory()).ranks.empty());
}

TEST_CASE("of many changes of plan the first and the last are kept") {
  RankHistory history;
  for (index_t step = 1; step <= 130; ++step) history.mark(step, std::to_string(step));
  REQUIRE(history.marks().size() == RankHistory::kMostMarks);
  CHECK(history.marks_dropped() == 30);
  CHECK(history.marks()[49].text == "50");
  CHECK(history.marks()[50].step == 81);
  CHECK(history.marks().back().step == 130);
}

TEST_CASE("the lower middle of what is above 0") {
  CHECK(lower_median({}) == 0);
  CHECK(lower_median({0, 0}) == 0);
  CHECK(lower_median({3, 1}) == 1);
  CHECK(lower_median({0, 3, 0, 1, 2}) == 2);
}

}  // namespace t3d
