// Sets of nodes beside each other: costs in one currency, what is nearest where nothing keeps to a
// wish.
#include "app/commands/plan/job_options.hpp"

#include "app/cluster/cluster_presets.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"

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
  wish.state_bytes = 1e6;
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
  const auto refused = [&] {
    (void)choose_option(job_options(searched_nodes(cluster), wish, cluster), wish);
  };
  CHECK_THROWS_WITH(refused(), contains("keeps to the budget;") && contains("1 x a100-40g"));
  wish.deadline_seconds = 1e-3;
  CHECK_THROWS_WITH(refused(), contains("the deadline and the budget;"));
}
