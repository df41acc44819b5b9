// Simulated lives: what must add up, closed forms, repeatability, intervals that hold.
#include "forecast/simulate/job_life.hpp"

#include <algorithm>
#include <cmath>

#include "forecast/simulate/nodes_here.hpp"
#include "forecast/simulate/random_stream.hpp"
#include "support/catch.hpp"
#include "unit/forecast/simulate/job_rig.hpp"

namespace t3d::test {
namespace {

/// Everything that can happen, often.
SimulatedJob troubled_job() {
  SimulatedJob job = small_job();
  job.classes[0].hazard = Hazard::weibull(0.5, 20);
  job.classes.push_back({"b", 0, 2.0, Hazard::constant(0.1), 300});
  for (JobSize& size : job.sizes) size.nodes.push_back(size.nodes[0] / 2);
  job.step_spread = 0.1;
  job.step_error = 0.05;
  job.site = {20, 4 * 3600, 300, 2000, true, 0.1, 0.02};
  return job;
}

double mean_seconds(const SimulatedJob& job, const SimulationPolicy& policy, index_t runs) {
  return summary_of(simulate_lives(job, policy, {runs, 5, nullptr})).seconds.mean;
}

}  // namespace

TEST_CASE("without losses a life is its steps, its checkpoints and its start") {
  SimulatedJob job = small_job();
  SimulationPolicy policy;
  policy.interval_seconds = 1000;
  const JobOutcome outcome = simulate_run(job, policy, {}, 0);
  CHECK(outcome.finished);
  // 36,000 s of steps; a checkpoint each 1,000 s of them but the last, then one at the end.
  CHECK(outcome.part(LifePart::useful) == Approx(36000));
  CHECK(outcome.seconds == Approx(30 + 36000 + 35 * 1 + 10));
  CHECK(outcome.checkpoints == 36);
  CHECK(outcome.cost == Approx(outcome.seconds / 3600 * 8 * 2.0));
  CHECK(undisturbed_seconds(job, policy) == Approx(30 + 36000 + 10));

  job.step_error = 0.1;  // one factor for a whole run
  const double longer = simulate_run(job, policy, {}, 3).part(LifePart::useful) / 36000;
  CHECK(longer != 1);
  CHECK(std::abs(std::log(longer)) < 0.5);
}

TEST_CASE("all time goes somewhere, and money follows nodes") {
  const SimulatedJob job = troubled_job();
  std::array<double, kLifeParts> seen{};
  index_t roll_backs = 0;
  for (index_t run = 0; run < 120; ++run) {
    SimulationPolicy policy;
    policy.recovery = run % 3 == 0 ? Recovery::requeue : Recovery::in_place;
    policy.copies = int(1 + run % 4);
    policy.spares = run % 2;
    policy.interval_seconds = run % 5 == 0 ? 200 : 0;
    policy.sizing = static_cast<Sizing>(run % 3);
    Timeline timeline;
    const JobOutcome outcome = simulate_run(job, policy, {1, 9, nullptr}, run, &timeline);
    CHECK(outcome.finished);
    CHECK(sum_of_parts(outcome) == Approx(outcome.seconds).epsilon(1e-9));
    CHECK(outcome.samples == Approx(job.samples).epsilon(1e-9));
    CHECK(outcome.cost == Approx(2.0 * outcome.node_seconds / 3600).epsilon(1e-9));
    for (std::size_t part = 0; part < kLifeParts; ++part) {
      CHECK(outcome.parts[part] >= 0);
      seen[part] += outcome.parts[part];
    }
    roll_backs += outcome.roll_backs;
    CHECK(timeline.end == outcome.seconds);
    CHECK(std::is_sorted(timeline.stretches.begin(), timeline.stretches.end(),
                         [](const auto& a, const auto& b) { return a.seconds < b.seconds; }));
    for (const Timeline::Stretch& stretch : timeline.stretches) CHECK(stretch.used <= stretch.here);
    // The same run gives the same bits.
    if (run < 10) CHECK(simulate_run(job, policy, {1, 9, nullptr}, run) == outcome);
    if (run < 10) CHECK_FALSE(simulate_run(job, policy, {1, 8, nullptr}, run) == outcome);
  }
  for (const double seconds : seen) CHECK(seconds > 0);
  CHECK(roll_backs > 100);
}

TEST_CASE("constant hazard: Daly's expected time") {
  // Of a segment of t + c seconds, restarts of r included, all of them under losses of rate l:
  // exp(l r) (exp(l (t + c)) - 1) / l (Daly 2006, section 4).
  SimulatedJob job = small_job();
  job.sizes = {{"", {8}, 1, 8}};
  job.samples = 8 * 20000;
  job.site.crashes_per_node_hour = 0.5;
  job.costs = {8, 8, 60, 0, 0, 0};
  const double rate = 8 * 0.5 / 3600;
  for (const double interval : {200.0, 1000.0}) {
    SimulationPolicy policy;
    policy.recovery = Recovery::in_place;
    policy.interval_seconds = interval;
    const double start = std::expm1(rate * 60) / rate;
    const double segment = std::exp(rate * 60) * std::expm1(rate * (interval + 8)) / rate;
    const double expected = start + 20000 / interval * segment;
    CHECK(mean_seconds(job, policy, 3000) == Approx(expected).epsilon(0.005));
  }
}

TEST_CASE("the interval that nobody gave is about the best") {
  CHECK(best_interval(5, 1024 * 0.016, 1) == Approx(46.875));
  CHECK(best_interval(5, 0, 1) == 6 * 3600);
  CHECK(best_interval(0, 10, 20) == 20);
  SimulatedJob job = small_job();
  job.classes[0].hazard = Hazard::constant(0.25);
  job.costs = {5, 5, 20, 5, 5, 0};
  SimulationPolicy policy;
  policy.recovery = Recovery::in_place;
  const double own = mean_seconds(job, policy, 400);
  for (const double interval : {30.0, 75.0, 300.0, 1200.0}) {
    policy.interval_seconds = interval;
    CHECK(own < 1.003 * mean_seconds(job, policy, 400));
  }
}

TEST_CASE("copies: a lost node costs a step, and losses together may cost all copies") {
  SimulatedJob job = small_job();
  job.classes[0].hazard = Hazard::constant(0.5);
  SimulationPolicy alone, copied;
  alone.recovery = copied.recovery = Recovery::in_place;
  alone.interval_seconds = copied.interval_seconds = 1800;
  copied.copies = 2;
  const LivesSummary without = summary_of(simulate_lives(job, alone, {200, 1, nullptr}));
  const LivesSummary with = summary_of(simulate_lives(job, copied, {200, 1, nullptr}));
  CHECK(with.share[1] < 0.1 * without.share[1]);  // lost
  CHECK(with.losses > 20);
  CHECK(with.roll_backs < 0.05 * with.losses);

  // Nothing is lost with these probabilities (N nodes, k lost at once, groups of m).
  struct Row {
    index_t nodes, lost;
    int copies;
    double whole;
  };
  for (const Row& row : {Row{12, 2, 2, 0.909}, Row{12, 4, 2, 0.485}, Row{18, 3, 2, 0.824},
                         Row{18, 4, 3, 0.971}, Row{64, 4, 2, 0.905}}) {
    RandomStream random(2, "groups", row.lost);
    int whole = 0;
    constexpr int kRounds = 20000;
    for (int round = 0; round < kRounds; ++round) {
      CopyGroups groups;
      groups.begin(row.nodes, row.copies);
      bool gone = false;
      for (index_t node = 0; node < row.lost; ++node) gone = groups.lose(random.uniform()) || gone;
      if (!gone) ++whole;
    }
    CHECK(double(whole) / kRounds == Approx(row.whole).margin(0.012));
  }
}

TEST_CASE("warnings in time cost no work") {
  SimulatedJob job = small_job();
  job.classes[0].hazard = Hazard::constant(0.5);
  job.site.grace_seconds = 60;
  SimulationPolicy in_place;
  in_place.recovery = Recovery::in_place;
  CHECK(simulate_run(job, in_place, {}, 0).part(LifePart::lost) > 0);  // nobody warns
  job.classes[0].warned = true;
  for (const int copies : {1, 2}) {
    SimulationPolicy policy;
    policy.recovery = Recovery::in_place;
    policy.copies = copies;
    const JobOutcome outcome = simulate_run(job, policy, {}, 0);
    CHECK(outcome.losses > 10);
    CHECK(outcome.part(LifePart::lost) == 0);
  }
  job.classes[0].hazard = Hazard();
  job.site.job_preemptions_per_hour = 1;
  job.site.walltime_seconds = 3600;
  const JobOutcome outcome = simulate_run(job, {}, {}, 0);
  CHECK(outcome.lives > 5);
  CHECK(outcome.part(LifePart::lost) == 0);
}

TEST_CASE("nine of ten other runs lie in the interval of 90 %") {
  SimulatedJob job = troubled_job();
  SimulationPolicy policy;
  policy.recovery = Recovery::in_place;
  for (const int copies : {1, 2}) {
    policy.copies = copies;
    const Spread spread = summary_of(simulate_lives(job, policy, {2000, 1, nullptr})).seconds;
    int inside = 0;
    for (const JobOutcome& outcome : simulate_lives(job, policy, {2000, 77, nullptr}))
      if (outcome.seconds >= spread.p5 && outcome.seconds <= spread.p95) ++inside;
    CHECK(inside >= 1760);
    CHECK(inside <= 1840);
  }
}

}  // namespace t3d::test
