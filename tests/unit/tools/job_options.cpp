// Sets of nodes beside each other: costs in one currency, what is nearest where nothing keeps to a
// wish.
#include "tools/plan/job_options.hpp"

#include <cmath>

#include "forecast/cluster/cluster_presets.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "tools/plan/plan_report.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

std::vector<NodesSearched> searched_nodes(const Cluster& cluster) {
  Config config = gpt_input();
  fill_computed_defaults(config, "test.toml");
  SearchRequest request;
  request.recipe = plan_recipe(config, {1, TransportKind::nccl, true});
  request.cuboid = Cuboid{1, 1, 1};
  ClusterRates rates(cluster);
  std::vector<NodesSearched> searched;
  for (std::size_t one = 0; one < cluster.classes.size(); ++one)
    searched.push_back(search_nodes(request, {{one, 1}}, rates));
  return searched;
}

JobWish small_wish() {
  JobWish wish;
  wish.steps = 1000;
  wish.sequences = 5;
  wish.state = {400'000, 600'000};
  return wish;
}

}  // namespace

TEST_CASE("costs of all sets of nodes are in one currency, or they are refused") {
  Cluster cluster = cluster_of_presets({"a100-40g", "l40s", "ib-hdr"});
  const std::vector<NodesSearched> searched = searched_nodes(cluster);
  for (const JobOption& one : job_options(searched, small_wish(), cluster))
    CHECK(one.job.currency == "node-hours");
  cluster.classes[0].price_per_node_hour = 3;
  cluster.classes[0].currency = "EUR";
  for (const JobOption& one : job_options(searched, small_wish(), cluster)) {
    CHECK(one.job.currency == "EUR");
    CHECK((one.cost.middle > 0) == (one.found.parts.front().node_class == 0));
  }
  cluster.classes[1].price_per_node_hour = 2;
  cluster.classes[1].currency = "USD";
  CHECK_THROWS_WITH(job_options(searched, small_wish(), cluster), contains("one currency"));
}

TEST_CASE("an impossible wish is named, with what is nearest") {
  const Cluster cluster = cluster_of_presets({"a100-40g", "l40s", "ib-hdr"});
  JobWish wish = small_wish();
  wish.budget = 1e-9;
  std::vector<JobOption> options = job_options(searched_nodes(cluster), wish, cluster);
  CHECK(!choose_option(options, wish));
  CHECK_THAT(unmet_text(options, wish),
             contains("keeps to the budget;") && contains("1 x a100-40g"));
  wish.deadline_seconds = 1e-3;
  options = job_options(searched_nodes(cluster), wish, cluster);
  CHECK(!choose_option(options, wish));
  CHECK_THAT(unmet_text(options, wish),
             contains("the deadline in 95 % of the lives and the budget;"));
}

TEST_CASE("lives that do not end: neither chosen nor drawn, and said where there are no others") {
  Cluster cluster = cluster_of_presets({"a100-40g", "l40s", "ib-hdr"});
  cluster.classes[0].hazard_scale_hours = 1e-5;
  cluster.scheduler.requeue_delay_seconds = 3600;
  JobWish wish = small_wish();
  wish.steps = 100'000'000;
  std::vector<NodesSearched> searched = searched_nodes(cluster);
  std::vector<JobOption> options = job_options(searched, wish, cluster);
  REQUIRE(options.size() == 2);
  CHECK(options[0].ended == kPlannedLives);
  CHECK(options[1].ended == 0);
  CHECK(std::isinf(options[1].hours.middle));
  std::reverse(options.begin(), options.end());
  CHECK(choose_option(options, wish) == 1);
  const PlanReport report{cluster, searched, options, 1, wish, 8, 0, {}};
  const std::string plot = plan_plot(report);
  CHECK_THAT(plot, contains("left out: 1 set of nodes"));
  CHECK_THAT(plot, !contains("inf") && !contains("nan"));

  cluster.classes[1].hazard_scale_hours = 1e-5;
  options = job_options(searched, wish, cluster);
  CHECK(!choose_option(options, wish));
  CHECK_THAT(unmet_text(options, wish), contains("on no set of nodes") && contains("0 %"));
  wish.budget = 5;
  CHECK_THAT(unmet_text(options, wish), contains("no plan keeps to the budget: on no set"));
}

TEST_CASE("lives with very many losses are fewer, and refuse no plan") {
  Cluster cluster = cluster_of_presets({"a100-40g", "ib-hdr"});
  cluster.classes[0].hazard_scale_hours = 1e-3;
  JobWish wish = small_wish();
  wish.steps = 20'000'000'000;
  const std::vector<JobOption> options = job_options(searched_nodes(cluster), wish, cluster);
  REQUIRE(options.size() == 1);
  CHECK(options[0].lives > 0);
  CHECK(options[0].lives < kPlannedLives);
}

TEST_CASE("names are cells of a table, and what is no UTF-8 is no end of JSON") {
  Cluster cluster = cluster_of_presets({"a100-40g", "ib-hdr"});
  cluster.classes[0].name = "a,\"b\"";
  const std::vector<NodesSearched> searched = searched_nodes(cluster);
  const JobWish wish = small_wish();
  const std::vector<JobOption> options = job_options(searched, wish, cluster);
  const PlanReport report{cluster, searched, options, 0, wish, 8, 0, {"goes on from \xff/ckpt"}};
  CHECK_THAT(plan_csv(report), contains("\n\"1 x a,\"\"b\"\"\",4,1,1,1,"));
  CHECK_THAT(plan_json(report), contains("goes on from \xef\xbf\xbd/ckpt"));
}

TEST_CASE("a deadline takes the cheapest in time, a budget the soonest within it") {
  const auto option = [](double hours, double cost, double in_time) {
    JobOption one;
    one.hours = {hours, hours, hours};
    one.cost = {cost, cost, cost};
    one.in_time = in_time;
    return one;
  };
  // The last one is dear and slow; nothing is within all of the second wish.
  const std::vector<JobOption> options{option(1, 100, 1), option(2, 30, 0.96), option(4, 20, 0.9),
                                       option(8, 18, 0.1), option(9, 90, 0)};
  JobWish wish;
  CHECK(choose_option(options, wish) == 0);
  wish.objective = "pareto";
  CHECK(choose_option(options, wish) == 1);  // 60: less than 100, 80, 144, 810
  wish.objective = "";
  wish.budget = 25;
  CHECK(choose_option(options, wish) == 2);
  CHECK(choice_text(wish) == "the soonest that stays within the budget in 95 % of the lives");
  std::vector<JobOption> priced = options;
  for (JobOption& one : priced) one.job.currency = "EUR";
  JobWish asked = wish;
  take_budget_unit(asked, priced);
  CHECK(choice_text(asked) ==
        "the soonest that stays within the budget of 25 EUR in 95 % of the lives");
  asked.budget_unit = "eur";
  take_budget_unit(asked, priced);
  CHECK(asked.budget_unit == "EUR");
  asked.budget_unit = "USD";
  CHECK_THROWS_WITH(take_budget_unit(asked, priced),
                    contains("--budget is in USD, and the costs are in EUR"));
  wish.deadline_seconds = 5 * 3600;
  CHECK(!choose_option(options, wish));
  wish.budget.reset();
  CHECK(choose_option(options, wish) == 1);
  wish.risk = 0.9;
  CHECK(choose_option(options, wish) == 2);
  CHECK(choice_text(wish) == "the cheapest that meets the deadline in 90 % of the lives");
  wish.objective = "time";
  CHECK(choose_option(options, wish) == 0);
}

TEST_CASE("the strictest partition of a job's classes limits it, and preemption is announced") {
  Cluster cluster = cluster_of_presets({"a100-40g", "l40s", "ib-hdr"});
  cluster.scheduler.partitions.resize(2);
  for (const auto& [at, name, limit, grace] :
       {std::tuple{0, "long", 86400.0, 300.0}, {1, "short", 7200.0, 30.0}}) {
    SchedulerPartition& partition = cluster.scheduler.partitions[static_cast<std::size_t>(at)];
    partition.name = name;
    partition.time_limit_seconds = limit;
    partition.grace_seconds = grace;
    cluster.classes[static_cast<std::size_t>(at)].partition = name;
    cluster.classes[static_cast<std::size_t>(at)].hazard_scale_hours = 100;
  }
  std::vector<NodesSearched> searched = searched_nodes(cluster);
  searched.push_back(searched.front());
  searched.back().parts = searched.back().plans.front().parts = {{0, 1}, {1, 1}};
  const auto site_of = [&](std::size_t classes) {
    for (const JobOption& one : job_options(searched, small_wish(), cluster))
      if (one.found.parts.size() == classes) return one.job.site;
    throw std::runtime_error("no such option");
  };
  CHECK(site_of(2).walltime_seconds == 7200);
  CHECK(site_of(2).grace_seconds == 0);  // nobody gives way
  cluster.classes[0].preemptible = true;
  CHECK(site_of(2).grace_seconds == 300);  // only nodes of this class are asked for back
  cluster.classes[1].preemptible = true;
  CHECK(site_of(2).grace_seconds == 30);
  cluster.classes[1].partition.clear();  // of a site without a default partition: not known
  CHECK(site_of(2).grace_seconds == 0);
  CHECK(site_of(2).walltime_seconds == 86400);
  cluster.scheduler.partitions[1].fallback = true;
  CHECK(site_of(2).grace_seconds == 30);
  for (const JobOption& one : job_options(searched, small_wish(), cluster))
    for (const SimulatedClass& own : one.job.classes) CHECK(own.warned);
}

TEST_CASE("short times are in seconds or minutes") {
  CHECK(time_text(2.5 / 3600) == "2.5 s");
  CHECK(time_text(100.0 / 3600) == "100 s");
  CHECK(time_text(4.5 / 60) == "4.5 min");
  CHECK(time_text(1) == "1 h");
  CHECK(time_text(123.4) == "123 h");
}
