// Factors that runs measured: put together, and put into a cluster's tables.
#include "forecast/cluster/run_factors.hpp"

#include "forecast/factor_filter.hpp"
#include "hetero/cost/memory.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// One class of 2 ranks on each node; the network is of all classes.
Cluster two_levels() {
  Cluster cluster;
  NodeClass one;
  one.name = "c1";
  one.nodes = 4;
  one.ranks_per_node = 2;
  one.launch_seconds = 1e-6;
  for (std::size_t kind = 0; kind < kOperatorKinds; ++kind) {
    OperatorTable table;
    table.kind = static_cast<OperatorKind>(kind);
    table.fit.terms.assign(form_of(table.kind).terms.size(), 1e-10);
    one.operators.push_back(table);
  }
  cluster.classes = {one, one};
  cluster.classes[1].name = "c2";
  for (const index_t nodes : {1, 0}) {
    Level level;
    level.name = nodes == 1 ? "node" : "network";
    level.node_class = nodes == 1 ? "c1" : "";
    level.nodes = nodes;
    level.alpha_seconds = 1e-6;
    level.beta_seconds_per_byte = 1e-9;
    level.collectives.push_back({Verb::all_reduce, {FitForm::sum, {1e-6, 1e-9, 0, 0}, {}}, {}});
    cluster.levels.push_back(level);
  }
  return cluster;
}

}  // namespace

TEST_CASE("tables corrected by factors give the terms times the factors") {
  Cluster cluster = two_levels();
  const Plan plan = plan_of(gpt_input(), Grid{2, 1, 2, {}, {}, {}}, 2);
  const auto terms = [&](const Cluster& of) {
    const JobNodes nodes(of, {{0, 4}});
    ClusterRates rates(of);
    return forecast_step(plan, nodes, rates).terms;
  };
  const ForecastTerms raw = terms(cluster);
  REQUIRE((raw.messages_inside() > 0 && raw.messages_between() > 0 && raw.host > 0));
  RunFactors& factors = cluster.classes[0].factors;
  factors.compute = {1.5, 0.1};
  factors.inside = {2, 0.1};
  factors.between = {3, 0.1};
  factors.host = {7, 0.4};  // nobody knows
  factors.steps = 100;
  const ForecastTerms corrected = terms(corrected_by_runs(cluster));
  CHECK(corrected.compute() == Approx(1.5 * raw.compute()));
  CHECK(corrected.messages_inside() == Approx(2 * raw.messages_inside()));
  CHECK(corrected.messages_between() == Approx(3 * raw.messages_between()));
  CHECK(corrected.host == raw.host);
  const Cluster twice = corrected_by_runs(corrected_by_runs(cluster));
  CHECK(twice == corrected_by_runs(cluster));
  // The other class's tables and its network stay.
  CHECK(twice.classes[1] == cluster.classes[1]);
  CHECK(twice.find_level("network", "c2")->beta_seconds_per_byte == 1e-9);
}

TEST_CASE("the state at rest is the weights and what the optimizer has of each matrix") {
  const auto state = [](OptimizerKind kind) {
    Config config = gpt_input();
    config.optimizer.kind = kind;
    return state_at_rest(plan_of(config, Grid{1, 1, 1, {}, {}, {}}, 1), Coord{});
  };
  const ModelConfig model = gpt_input().model;
  const StateAtRest sgd = state(OptimizerKind::sgd), adamw = state(OptimizerKind::adamw),
                    muon = state(OptimizerKind::muon);
  CHECK(sgd.weights == Approx(4.0 * static_cast<double>(parameter_count(model))).epsilon(0.02));
  CHECK(adamw.weights == sgd.weights);
  CHECK(adamw.optimizer == 2 * sgd.optimizer);
  const double matrices =
      static_cast<double>(model.layers * (4 * model.hidden + 2 * model.ffn) * model.hidden);
  CHECK(static_cast<double>(adamw.optimizer - muon.optimizer) ==
        Approx(4 * matrices).epsilon(0.2));  // small pieces are rounded upward
}

TEST_CASE("runs are weighted by what they know, and differ") {
  RunFactors one, two;
  one.compute = {1.0, 0.01};
  one.host = {2, 0.1};
  one.steps = 10;
  one.runs = {"a"};
  two.compute = {1.02, 0.02};
  two.inside = {1.3, 0.1};
  two.steps = 5;
  two.runs = {"a", "b"};
  two.time = "2026";
  const RunFactors all = merged_factors(one, two);
  CHECK(all.compute.value == Approx(1.004));
  CHECK(all.compute.error == Approx(0.01 / std::sqrt(1.25)));
  CHECK(all.host == one.host);
  CHECK(all.inside == two.inside);
  CHECK(all.steps == 15);
  CHECK(all.runs == std::vector<std::string>{"a", "b"});
  CHECK(all.time == "2026");
  two.compute = {1.2, 0.02};
  CHECK(merged_factors(one, two).compute.error == Approx(0.1));
}

TEST_CASE("the filter knows how well it knows a factor") {
  FactorFilter filter;
  ForecastTerms terms;
  terms.operators[0] = 1;
  terms.inside[0] = 1;
  for (int step = 0; step < 100; ++step) filter.add(terms, 1.2, 2.0);
  CHECK(filter.factors().compute == Approx(1.2).epsilon(0.01));
  CHECK(filter.errors().compute < 0.05);
  // Half of the step are messages: what waiting may be of it is not known better than to a tenth.
  CHECK(filter.errors().inside == Approx(0.1).margin(0.02));
  CHECK(filter.errors().between == Approx(0.5));  // no such message
}
