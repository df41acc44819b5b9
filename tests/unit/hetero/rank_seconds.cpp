// From what a rank reports to what its sequences cost (hetero/balance/rank_seconds.hpp).
#include "hetero/balance/rank_seconds.hpp"

#include "support/catch.hpp"
#include "support/planner_case.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

RankTimes times_of(double matmul, double other, double cpu_part = 1) {
  RankTimes times;
  times.matmul = matmul;
  times.other = other;
  times.own = matmul + other;
  times.cpu = cpu_part * times.own;
  return times;
}

}  // namespace

TEST_CASE("of the operators between the products, the optimizer's work is fixed") {
  const RankWork work{{1000, 0, 0, 100}, {0, 0, 0, 25}};
  const RankSeconds seconds = rank_seconds(times_of(3, 2), work, false, nullptr);
  CHECK(seconds.all == 5);
  CHECK(seconds.fixed == Approx(0.5));
  CHECK(rank_seconds(times_of(0, 2), {{}, {}}, false, nullptr).fixed == 0);
}

TEST_CASE("where a core is shared all of it is CPU time") {
  const RankWork work{{1000, 0, 0, 100}, {0, 0, 0, 25}};
  const RankTimes shared = times_of(3, 2, 0.25);
  CHECK(rank_seconds(shared, work, true, nullptr).all == Approx(1.25));
  CHECK(rank_seconds(shared, work, true, nullptr).fixed == Approx(0.125));
  CHECK(rank_seconds(shared, work, false, nullptr).all == 5);
  CHECK(counted_part(shared, true) == Approx(0.25));
  CHECK(counted_part(times_of(3, 2, 0), true) == 1);  // a GPU
}

TEST_CASE("Newton-Schulz is fixed: at its known rate, else at that of the products") {
  const RankWork work{{1000, 0, 300, 100}, {0, 0, 300, 25}};
  RankSpeed known = rank_speed(1);
  known.curve(WorkClass::whole) = TimeCurve::of_rate(100);     // 3 s
  known.curve(WorkClass::streamed) = TimeCurve::of_rate(100);  // 1 s
  // The step took twice as long as was known: 6 s and 2 s, of which a quarter is the optimizer's.
  CHECK(rank_seconds(times_of(4, 8), work, false, &known).fixed == Approx(6.5));
  CHECK(rank_seconds(times_of(10, 4), work, false, nullptr).fixed == Approx(3 + 0.25));
  CHECK(rank_seconds(times_of(10, 2), work, false, nullptr).fixed == Approx(2));
  const RankSpeed unknown;
  CHECK(rank_seconds(times_of(10, 4), work, false, &unknown).fixed == Approx(3.25));
}
