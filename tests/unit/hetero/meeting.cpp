// What ranks wait where they meet (hetero/cluster/meeting.hpp), and where a forecast has it.
#include "hetero/cluster/meeting.hpp"

#include "support/catch.hpp"
#include "support/forecast_rig.hpp"

using namespace t3d;
using namespace t3d::test;

TEST_CASE("the expected largest of some normals") {
  CHECK(expected_largest(1) == 0);
  // Tables of order statistics (Harter 1961).
  CHECK(expected_largest(2) == Approx(0.56419).epsilon(0.04));
  CHECK(expected_largest(3) == Approx(0.84628).epsilon(0.024));
  CHECK(expected_largest(4) == Approx(1.02938).epsilon(0.02));
  CHECK(expected_largest(8) == Approx(1.42360).epsilon(0.02));
  CHECK(expected_largest(64) == Approx(2.34374).epsilon(0.02));
  CHECK(expected_largest(1000) == Approx(3.24144).epsilon(0.02));
  CHECK(expected_largest(10000) == Approx(3.85162).epsilon(0.045));
  CHECK(meeting_share(0, 8) == 0);
  CHECK(meeting_share(0.1, 1) == 0);
}

TEST_CASE("ranks that cut products wait at each of them, slabs and replicas do not") {
  Cluster cluster = small_cluster(2);
  Cluster noisy = cluster;
  noisy.classes.front().jitter = 0.2;
  ClusterRates rates(cluster), noisy_rates(noisy);
  const JobNodes nodes(cluster, {{0, 1}}), noisy_nodes(noisy, {{0, 1}});
  for (const Grid& grid : {Grid{4, 1, 1, {}, {}, {}}, Grid{2, 2, 1, {}, {}, {}},
                           Grid{1, 2, 2, {}, {}, {}}, Grid{1, 1, 4, {}, {}, {}}}) {
    const Plan plan = plan_of(gpt_input(), grid);
    const StepForecast quiet = forecast_step(plan, nodes, rates),
                       waits = forecast_step(plan, noisy_nodes, noisy_rates);
    INFO(plan.text());
    CHECK(quiet.terms.meeting == 0);
    const double expected = meeting_share(0.2, grid.q * grid.r) * quiet.terms.compute();
    CHECK(waits.terms.meeting == Approx(expected));
    CHECK(waits.seconds() == Approx(quiet.seconds() + expected));
  }
}
