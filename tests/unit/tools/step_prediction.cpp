// hetero.cluster: what is said of predicted and measured steps, and what the factors are made of.
#include "tools/step_prediction.hpp"

#include "forecast/cluster/cluster_file.hpp"
#include "io/posix_file.hpp"
#include "support/catch.hpp"
#include "support/forecast_rig.hpp"
#include "support/scratch_folder.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Of four ranks on one node.
Cluster one_node() {
  Cluster cluster = small_cluster(1);
  cluster.classes.front().node_list = "n1";
  return cluster;
}

StepPrediction prediction_of(const Cluster& cluster) {
  const ScratchFolder folder("step_prediction");
  const std::string path = folder.path() + "/cluster.toml";
  write_text_durably(path, cluster_text(cluster));
  return {path, std::vector<std::string>(4, "n1"), std::vector<std::string>(4, "cpu")};
}

}  // namespace

TEST_CASE("predicted and measured are medians of the same steps, whatever their plans") {
  StepPrediction prediction = prediction_of(one_node());
  const auto run = [&](const Grid& grid, int steps) {
    const double seconds = prediction.seconds(plan_of(gpt_input(), grid));
    for (int step = 0; step < steps; ++step) prediction.measured(2 * seconds);
    return seconds;
  };
  CHECK(prediction.remarks().empty());
  const double first = run({4, 1, 1, {}, {}, {}}, 2 + 5), then = run({1, 4, 1, {}, {}, {}}, 4);
  REQUIRE(std::abs(first / then - 1) > 0.02);
  CHECK(prediction.remarks() ==
        std::vector<std::string>{fmt::format(
            "hetero.cluster predicted {:.4g} ms a step, measured {:.4g} ms (medians of 9 steps): "
            "+100.0 %",
            1e3 * first, 2e3 * first)});
  CHECK(!prediction.factors());  // nobody said what ranks computed
}

TEST_CASE("factors are of the steps of which the ranks' times are known") {
  const Cluster cluster = one_node();
  StepPrediction prediction = prediction_of(cluster);
  const Plan plan = plan_of(gpt_input(), Grid{4, 1, 1, {}, {}, {}});
  const double predicted = prediction.seconds(plan);
  ClusterRates rates(cluster);
  const double compute = forecast_step(plan, JobNodes(cluster, {{0, 1}}), rates).terms.compute();
  const double longer = 0.4 * compute;
  for (int step = 1; step <= 60; ++step) {
    prediction.measured(predicted + longer);
    if (step % 5 == 0) prediction.computed(compute + longer, predicted + longer);
  }
  const auto found = prediction.factors();
  REQUIRE(found);
  CHECK(found->factors.steps == 12);
  CHECK(found->factors.compute.value == Approx(1.4).epsilon(0.05));
}
