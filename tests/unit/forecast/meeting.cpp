// What ranks wait where they meet (forecast/cluster/meeting.hpp), and where a forecast has it.
#include "forecast/cluster/meeting.hpp"

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
  CHECK(meeting_seconds({0, 0}, 8, 1, 10) == 0);
  CHECK(meeting_seconds({0.1, 0}, 1, 1, 10) == 0);
}

TEST_CASE("long pieces differ less, where disturbances have nothing to do with each other") {
  const Jitter shared{0.1, 0}, apart{0.1, 0.5};
  CHECK(shared.of(1) == 0.1);
  CHECK(apart.of(1e-3) == Approx(0.1));
  CHECK(apart.of(1e-2) == Approx(0.1 / std::sqrt(10)));
  CHECK(apart.of(1e-9) == Approx(0.1 * std::sqrt(10)));
  CHECK(apart.of(100) == Approx(0.01));
  // A second of computing with a hundred meetings is a hundred pieces of 10 ms.
  CHECK(meeting_seconds(apart, 4, 1, 100) == Approx(apart.of(1e-2) * expected_largest(4)));
  double before = 0;
  for (const double computing : {1e-6, 1e-4, 1e-3, 1e-2, 1.0, 10.0}) {
    const double waits = meeting_seconds(apart, 4, computing, 10);
    CHECK(waits > before);
    CHECK(meeting_seconds(apart, 4, computing, 20) >= waits);
    before = waits;
  }
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
    const index_t members = grid.q * grid.r;
    const double computing = quiet.terms.compute();
    const double expected = meeting_seconds({0.2, 0}, members, computing, 1);
    CHECK(waits.terms.meeting == Approx(expected));
    CHECK(waits.seconds() == Approx(quiet.seconds() + expected));
    // A piece is what lies between two messages over j or k, however long it takes.
    double calls = 0;
    const TrafficTable traffic = step_traffic(plan, Coord{});
    for (const Group group : {Group::j, Group::k})
      for (std::size_t verb = 0; verb < kVerbs; ++verb)
        for (const TrafficCalls& some : traffic.calls(static_cast<Verb>(verb), group))
          calls += static_cast<double>(some.calls);
    CHECK((calls > 0) == (members > 1));
    noisy.classes.front().jitter_exponent = 0.4;
    CHECK(forecast_step(plan, noisy_nodes, noisy_rates).terms.meeting ==
          Approx(meeting_seconds({0.2, 0.4}, members, computing, calls)));
    noisy.classes.front().jitter_exponent = 0;
  }
}
