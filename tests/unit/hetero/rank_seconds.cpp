// From what a rank reports to what its sequences cost (hetero/balance/rank_seconds.hpp).
#include "hetero/balance/rank_seconds.hpp"

#include "support/catch.hpp"

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
  const RankSeconds seconds = rank_seconds(times_of(3, 2), work, false);
  CHECK(seconds.all == 5);
  CHECK(seconds.fixed == Approx(0.5));
  CHECK(rank_seconds(times_of(0, 2), {{}, {}}, false).fixed == 0);
}

TEST_CASE("where a core is shared all of it is CPU time") {
  const RankWork work{{1000, 0, 0, 100}, {0, 0, 0, 25}};
  const RankTimes shared = times_of(3, 2, 0.25);
  CHECK(rank_seconds(shared, work, true).all == Approx(1.25));
  CHECK(rank_seconds(shared, work, true).fixed == Approx(0.125));
  CHECK(rank_seconds(shared, work, false).all == 5);
  CHECK(rank_seconds(times_of(3, 2, 0), work, true).all == 5);  // a GPU
}

TEST_CASE("Newton-Schulz is fixed, all of it") {
  const RankWork work{{1000, 0, 300, 100}, {0, 0, 300, 25}};
  RankTimes times = times_of(4, 8);
  times.whole = 6;
  CHECK(rank_seconds(times, work, false).fixed == Approx(6.5));
  times.cpu = times.own / 2;
  CHECK(rank_seconds(times, work, true).fixed == Approx(3.25));
}
