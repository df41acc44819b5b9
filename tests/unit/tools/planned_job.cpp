// What `plan` promises is what `simulate` finds for the job that it writes: of the final input,
// nothing beside it.
#include "tools/plan/planned_job.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <cmath>

#include "forecast/cluster/cluster_presets.hpp"
#include "forecast/simulate/job_plan.hpp"
#include "support/catch.hpp"
#include "support/forecast_rig.hpp"
#include "tools/plan/plan_input.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Mixed and equal nodes, measured and from data sheets, with few, many, early and warned losses.
Cluster varied_cluster(int number) {
  const bool sheets = number % 2 == 0, mixed = number % 4 < 2;
  Cluster cluster = small_cluster(2);
  if (sheets) cluster = cluster_of_presets({"a100-40g", "l40s", "ib-hdr"});
  if (!sheets && mixed) {
    cluster.classes.push_back(cluster.classes.front());
    cluster.classes.back().name = "c2";
  }
  if (!mixed && cluster.classes.size() > 1) cluster.classes.pop_back();
  for (std::size_t at = 0; at < cluster.classes.size(); ++at) {
    NodeClass& one = cluster.classes[at];
    one.nodes = 2;
    if (!sheets) one.calibration.state = Calibrated::measured;
    one.hazard_shape = number % 3 == 0 ? 0.5 : 1;
    one.hazard_scale_hours = number % 5 == 0 ? 0 : 2.0 * (number % 5) + static_cast<double>(at);
    one.return_hours = 0.05;
    one.preemptible = number % 7 == 0;
  }
  if (!sheets)
    for (Level& level : cluster.levels) level.calibration.state = Calibrated::measured;
  cluster.scheduler.requeue_delay_seconds = 60.0 * (number % 6);
  return cluster;
}

Config planned_config() {
  Config config = gpt_input();
  config.batch.sequences = 16;
  fill_computed_defaults(config, "test.toml");
  return config;
}

std::vector<NodesSearched> searched_on(const Cluster& cluster, const Config& config) {
  SearchRequest request;
  request.recipe = plan_recipe(config, {1, TransportKind::nccl, true});
  request.kept = 1;
  ClusterRates rates(cluster);
  std::vector<NodesSearched> searched;
  for (const std::vector<JobPart>& parts : node_sets(request, cluster))
    searched.push_back(search_nodes(request, parts, rates));
  return searched;
}

/// About six hours of steps on the fastest nodes, state of some GB.
JobWish long_wish(const std::vector<NodesSearched>& searched) {
  double step = 1e9;
  for (const NodesSearched& one : searched)
    if (!one.plans.empty()) step = std::min(step, one.plans.front().seconds());
  JobWish wish;
  wish.steps = static_cast<index_t>(6 * 3600 / step);
  wish.sequences = 16;
  wish.state = {400'000'000, 600'000'000};
  wish.checkpoint_minutes = 30;
  wish.checkpoint_free = true;
  return wish;
}

}  // namespace

TEST_CASE("deadlines are kept as often as planned, by the job that is written, on 20 clusters") {
  double largest = 0;
  for (int number = 1; number <= 20; ++number) {
    INFO("cluster " << number);
    const Cluster cluster = varied_cluster(number);
    const Config config = planned_config();
    const std::vector<NodesSearched> searched = searched_on(cluster, config);
    JobWish wish = long_wish(searched);
    wish.deadline_seconds = 3600 * (number % 3 == 0 ? 7.0 : number % 3 == 1 ? 9.0 : 14.0);
    const std::vector<JobOption> options = job_options(searched, wish, cluster);
    REQUIRE(!options.empty());
    const JobOption& one = options.front();
    const SimulatedJob job = parse_job_plan(job_plan_text(one.job), "written");
    LivesRequest request;
    request.runs = one.lives;
    CHECK(finish_probability(simulate_lives(job, job.policy, request), *wish.deadline_seconds) ==
          one.in_time);
    // Other lives than those that the plan looked at.
    request.seed = 77;
    request.runs = 400;
    const double again =
        finish_probability(simulate_lives(job, job.policy, request), *wish.deadline_seconds);
    const double error = std::sqrt(2 * std::max(one.in_time * (1 - one.in_time), 0.01) / 400);
    CHECK(std::abs(again - one.in_time) < 3.5 * error);
    largest = std::max(largest, std::abs(again - one.in_time));
    // The run writes checkpoints when the lives did.
    const toml::table input = toml::parse(planned_input(config, {}, one.found, job, "plan.toml"));
    CHECK(60 * *input["checkpoint"]["every_minutes"].value<double>() ==
          Approx(job.policy.interval_seconds));
  }
  INFO("largest difference " << largest);
  CHECK(largest < 0.1);
}

TEST_CASE("what the input says of checkpoints is simulated, and what it leaves free is the best") {
  Cluster cluster = small_cluster(2);
  cluster.classes.front().hazard_shape = 1;
  cluster.classes.front().hazard_scale_hours = 1;
  const std::vector<NodesSearched> searched = searched_on(cluster, planned_config());
  JobWish wish = long_wish(searched);
  const auto job_of = [&] { return job_options(searched, wish, cluster).front().job; };
  const SimulatedJob free = job_of();
  CHECK(free.policy.interval_seconds >= 60);
  CHECK(free.policy.interval_seconds < 1800);
  wish.checkpoint_free = false;
  const SimulatedJob written = job_of();
  CHECK(written.policy.interval_seconds == 1800);
  const auto middle = [](const SimulatedJob& job, double interval) {
    SimulationPolicy policy = job.policy;
    policy.interval_seconds = interval;
    return summary_of(simulate_lives(job, policy, {})).seconds.p50;
  };
  const double best = middle(free, free.policy.interval_seconds);
  CHECK(best < middle(free, 1800));
  CHECK(best < 1.01 * middle(free, 3 * free.policy.interval_seconds));
  wish.checkpoint_minutes = 0;  // only at the end
  CHECK(job_of().policy.interval_seconds >= 1e9);
  wish.checkpoint_steps = 100;
  CHECK(job_of().policy.interval_seconds ==
        Approx(std::max(1.0, 100 * free.sizes.back().step_seconds)));
  // Steps wait for what is not written beside them.
  CHECK(free.costs.checkpoint_stall_seconds < free.costs.checkpoint_write_seconds);
  wish.checkpoint_asynchronous = false;
  const SimulatedJob waits = job_of();
  CHECK(waits.costs.checkpoint_stall_seconds == waits.costs.checkpoint_write_seconds);
  // Nothing is known of losses: as the input has it.
  cluster.classes.front().hazard_scale_hours = 0;
  wish.checkpoint_minutes = 30;
  wish.checkpoint_steps = 0;
  wish.checkpoint_free = true;
  CHECK(job_of().policy.interval_seconds == 1800);
}

TEST_CASE("a plan rests on measurements of what it uses, not of other classes' networks") {
  Cluster cluster;
  cluster.classes.resize(2);
  cluster.classes[0].name = "old";
  cluster.classes[1].name = "new";
  cluster.levels.resize(3);
  cluster.levels[0].nodes = 1;  // inside a node: of data sheets
  cluster.levels[1].node_class = "old";
  cluster.levels[2].node_class = "new";
  cluster.classes[1].calibration.state = Calibrated::measured;
  cluster.levels[2].calibration.state = Calibrated::measured;

  FoundPlan found;
  found.parts = {{1, 2}};
  found.forecast.terms.between[static_cast<std::size_t>(Group::d)] = 1;
  CHECK(rests_on_measurements(found, cluster));
  cluster.levels[1].node_class.clear();  // all classes
  CHECK_FALSE(rests_on_measurements(found, cluster));
  found.forecast.terms.between.fill({});  // nothing leaves a node
  CHECK(rests_on_measurements(found, cluster));
  found.parts.push_back({0, 1});
  CHECK_FALSE(rests_on_measurements(found, cluster));
}

TEST_CASE("no life is shorter than peaks allow, and half of them are longer by far") {
  const Cluster cluster = cluster_of_presets({"a100-40g", "ib-hdr"});
  const std::vector<NodesSearched> searched = searched_on(cluster, planned_config());
  JobWish wish = long_wish(searched);
  JobOption one = job_options(searched, wish, cluster).front();
  const double undisturbed = undisturbed_seconds(one.job, one.job.policy) / 3600;
  CHECK(one.hours.low > 0.999 * undisturbed);
  CHECK(one.hours.middle > 1.4 * undisturbed);
  CHECK(one.hours.high > 3 * undisturbed);
  wish.deadline_seconds = 3600 * 1.2 * undisturbed;  // "in 95 %" with an error around the peak
  CHECK(job_options(searched, wish, cluster).front().in_time < 0.35);
  // Measured rates have an error to both sides.
  Cluster measured = small_cluster(1);
  measured.classes.front().calibration.state = Calibrated::measured;
  const std::vector<NodesSearched> known = searched_on(measured, planned_config());
  wish = long_wish(known);
  one = job_options(known, wish, measured).front();
  CHECK(one.hours.low < undisturbed_seconds(one.job, one.job.policy) / 3600);
  CHECK(one.job.step_slower == 0);
}

TEST_CASE("as many lives as can tell the wished risk") {
  JobWish wish;
  CHECK(planned_runs(wish) == kPlannedLives);
  wish.deadline_seconds = 3600;
  CHECK(planned_runs(wish) == kPlannedLives);
  wish.risk = 0.999;
  CHECK(planned_runs(wish) == 3000);
}
