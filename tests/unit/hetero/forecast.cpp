// Steps forecast from a cluster's tables (hetero/forecast): operators listed one by one are the
// work that is counted, ranks reach each other by the right level, the search misses no better
// plan.
#include <fmt/format.h>

#include "forecast/candidate_bounds.hpp"
#include "forecast/class_memory.hpp"
#include "forecast/even_reach.hpp"
#include "forecast/plan_search.hpp"
#include "hetero/cost/flops.hpp"
#include "hetero/cost/memory.hpp"
#include "support/catch.hpp"
#include "support/forecast_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

double flops_of(const std::vector<OperatorCall>& calls, OperatorKind kind) {
  double sum = 0;
  for (const OperatorCall& call : calls)
    if (call.kind == kind)
      sum += call.times *
             term_counts(kind, std::span(call.shape).first(form_of(kind).columns.size()))[1];
  return sum;
}

}  // namespace

TEST_CASE("operators one by one are the work that is counted") {
  std::vector<Config> configs{gpt_input(), llama_input(), qwen_input(), lora_input(),
                              tiny_frozen()};
  for (Config config : configs)
    for (const Recompute recompute : {Recompute::none, Recompute::block})
      for (const AttentionRule attention : {AttentionRule::sequences, AttentionRule::heads})
        for (const Grid& grid :
             {Grid{}, Grid{2, 3, 2, {1, 4}, {3, 0, 1}, {2, 1}}, Grid{1, 1, 3, {}, {}, {}}}) {
          config.batch.recompute = recompute;
          config.mesh.attention = attention;
          config.batch.micro = 2;
          const Plan plan = plan_of(config, grid);
          for (int rank = 0; rank < plan.ranks; ++rank) {
            const Coord coord = plan.mesh().coord_of(rank);
            const StepWork work = step_work(plan, coord);
            const std::vector<OperatorCall> calls = step_calls(plan, coord);
            INFO(plan.text() << "rank " << rank);
            CHECK(flops_of(calls, OperatorKind::matmul) ==
                  Approx(static_cast<double>(work.matmul)));
            CHECK(flops_of(calls, OperatorKind::attention_forward) +
                      flops_of(calls, OperatorKind::attention_backward) ==
                  Approx(static_cast<double>(work.attention)));
          }
        }
}

TEST_CASE("mean and sum of two replicas look at the gradients once more, for the noise scale") {
  const auto residual_bytes = [](AggregateMethod method, index_t replicas) {
    Config config = gpt_input();
    config.aggregate.method = method;
    config.batch.sequences = 4 * replicas;
    config.batch.micro = 2;
    const Plan plan = plan_of(config, Grid{1, 2, 1, {}, {}, {}}, replicas);
    double bytes = 0;
    for (const OperatorCall& call : step_calls(plan, Coord{}))
      if (call.kind == OperatorKind::residual) bytes += call.shape[0] * call.times;
    return bytes;
  };
  Config config = gpt_input();
  const Plan plan = plan_of(config, Grid{1, 2, 1, {}, {}, {}});
  const auto gradients = 4 * static_cast<double>(parameters_at_rest(plan, Coord{}));
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::sum})
    CHECK(residual_bytes(method, 2) - residual_bytes(method, 1) == Approx(gradients));
  CHECK(residual_bytes(AggregateMethod::adasum, 2) ==
        Approx(residual_bytes(AggregateMethod::adasum, 1)));
}

TEST_CASE("a class needs what its fullest rank needs, wherever in its slab that is") {
  Cluster cluster = small_cluster(2);
  cluster.classes.push_back(cluster.classes.front());
  cluster.classes.back().name = "c2";
  const JobNodes nodes(cluster, {{0, 1}, {1, 2}});  // 4 + 8 ranks
  std::vector<Config> configs{gpt_input(), llama_input()};
  configs.back().optimizer.kind = OptimizerKind::muon;
  for (const Config& config : configs)
    for (const Grid& grid :
         {Grid{2, 3, 2, {1, 4}, {3, 0, 1}, {2, 1}}, Grid{1, 4, 3, {}, {1, 12, 1, 1}, {1, 1, 2}}}) {
      const Plan plan = plan_of(config, grid);
      std::vector<ClassMemory> most(2);
      for (int rank = 0; rank < plan.ranks; ++rank) {
        const Coord coord = plan.mesh().coord_of(rank);
        ClassMemory& own = most[nodes.seat(rank).node_class];
        own.needed_bytes =
            std::max(own.needed_bytes, needed_bytes(memory_cost(plan, coord), false));
        own.parameters = std::max(own.parameters, parameters_at_rest(plan, coord));
      }
      const std::vector<ClassMemory> found = class_memory(plan, nodes);
      REQUIRE(found.size() == 2);
      for (std::size_t at = 0; at < found.size(); ++at) {
        CHECK(found[at].needed_bytes == Approx(most[at].needed_bytes).epsilon(0.01));
        CHECK(found[at].parameters == Approx(most[at].parameters).epsilon(0.01));
      }
      if (grid.p > 1) continue;
      // The first rank of the slab is not the fullest.
      const index_t first = needed_bytes(memory_cost(plan, Coord{}), false);
      CHECK(static_cast<double>(first) < 0.9 * static_cast<double>(most[0].needed_bytes));
    }
}

TEST_CASE("ranks reach each other by the innermost level that has both") {
  const Cluster cluster = small_cluster(4);
  const JobNodes nodes(cluster, {{0, 4}});
  const Plan plan = plan_of(gpt_input(), Grid{2, 1, 4, {}, {}, {}}, 2);  // replicas of two nodes
  const auto peers = [&](Group group) {
    std::string text;
    const Reach reach = nodes.reach(plan, {0, 0, 0, 0}, group);
    for (const Reach::At& at : reach.levels)
      text += fmt::format("{} {}{} ", cluster.levels[at.level].name, at.peers,
                          at.between ? " out" : "");
    return text + fmt::format("groups {}", reach.groups);
  };
  CHECK(peers(Group::k) == "node 3 groups 1");
  CHECK(peers(Group::i) == "leaf 1 out groups 4");
  CHECK(peers(Group::d) == "core 1 out groups 4");
  CHECK(peers(Group::ik) == "node 3 leaf 4 out groups 1");
  CHECK(peers(Group::world) == "node 3 leaf 4 out core 8 out groups 1");
}

TEST_CASE(
    "bytes take longer where the links of switches are shared by more nodes than they carry") {
  Cluster cluster = small_cluster(4);  // two under a switch
  const Plan plan = plan_of(gpt_input(), Grid{2, 1, 4, {}, {}, {}}, 2);
  const auto messages = [&](std::size_t group) {
    const JobNodes nodes(cluster, {{0, 4}});
    ClusterRates rates(cluster);
    return forecast_step(plan, nodes, rates).terms.between[group];
  };
  const auto over_i = static_cast<std::size_t>(Group::i),
             over_d = static_cast<std::size_t>(Group::d);
  for (Level& level : cluster.levels) level.alpha_seconds = 0;
  const double leaf = messages(over_i), core = messages(over_d);
  REQUIRE((leaf > 0 && core > 0));
  cluster.levels[2].oversubscription = 3;  // of the core
  CHECK(messages(over_i) == leaf);
  CHECK(messages(over_d) == Approx(3 * core));
  CHECK(JobNodes(cluster, {{0, 1}}).oversubscribed(2) == 1.5);  // half of a switch's nodes
  cluster.levels[1].oversubscription = 3;  // nothing is known of switches below
  CHECK(JobNodes(cluster, {{0, 1}}).oversubscribed(1) == 1);
  CHECK(JobNodes(cluster, {{0, 2}}).oversubscribed(1) == 2);
  CHECK(JobNodes(cluster, {{0, 4}}).oversubscribed(1) == 3);
  cluster.levels[0].oversubscription = 3;
  CHECK(JobNodes(cluster, {{0, 4}}).oversubscribed(0) == 1);
}

TEST_CASE("ranks of a node share its adapters, however they are grouped") {
  // Over j: 8 ranks on two nodes. Over i: 2 ranks, one on each node, while 4 such groups send.
  Cluster cluster = small_cluster(2);
  for (Level& level : cluster.levels) level.alpha_seconds = 0;
  cluster.levels[1].nics_per_node = 2;
  const JobNodes nodes(cluster, {{0, 2}});
  const auto check = [&](const Config& config, const Grid& grid, Group group, double outside) {
    const Plan plan = plan_of(config, grid);
    double bytes = 0;
    const TrafficTable traffic = step_traffic(plan, Coord{});
    for (std::size_t verb = 0; verb < kVerbs; ++verb)
      for (const TrafficCalls& calls : traffic.calls(static_cast<Verb>(verb), group))
        bytes += static_cast<double>(calls.bytes);
    ClusterRates rates(cluster);
    const double seconds =
        forecast_step(plan, nodes, rates).terms.between[static_cast<std::size_t>(group)];
    REQUIRE(bytes > 0);
    // Four ranks of a node send through two adapters.
    CHECK(seconds == Approx(bytes * outside * cluster.levels[1].beta_seconds_per_byte * 4 / 2));
  };
  check(gpt_input(), Grid{2, 4, 1, {}, {}, {}}, Group::i, 1);
  Config wide = gpt_input();
  wide.model.heads = wide.model.kv_heads = 8;
  wide.model.hidden = 64;
  check(wide, Grid{1, 8, 1, {}, {}, {}}, Group::j, 4.0 / 7);
}

TEST_CASE("the search's best plan is that of pricing all candidates") {
  for (Config config : {gpt_input(), llama_input()})
    for (const auto& [count, device] :
         {std::pair{1, "cpu"}, {2, "cpu"}, {3, "cpu"}, {6, "cpu"}, {2, "gpu"}, {6, "gpu"}}) {
      Cluster cluster = small_cluster(6);
      cluster.classes.front().device = device;
      ClusterRates rates(cluster);
      config.batch.sequences = 24;
      SearchRequest request = request_of(config);
      request.kept = 1;
      request.most_priced = 1 << 20;
      const NodesSearched quick = search_nodes(request, {{0, count}}, rates);
      request.kept = 1 << 20;  // then no bound ends it
      const NodesSearched all = search_nodes(request, {{0, count}}, rates);
      INFO(count << " nodes: " << quick.priced << " of " << all.priced << " priced");
      REQUIRE(!all.plans.empty());
      CHECK(quick.complete);
      CHECK(all.priced == all.candidates);
      CHECK(quick.plans.front().seconds() == all.plans.front().seconds());
      for (const FoundPlan& found : all.plans)
        CHECK(forecast_step(found.plan, JobNodes(cluster, {{0, count}}), rates).seconds() ==
              found.seconds());
    }
}

namespace {

/// The largest bound over what its plan is priced at: by order of axes, and of all orders at once.
double largest_bound(const Config& config, const Cluster& cluster, index_t count) {
  ClusterRates rates(cluster);
  SearchRequest request = request_of(config);
  const JobNodes nodes(cluster, {{0, count}});
  LeftOutMap left_out;
  const CandidateBounds bounds(request.recipe.base.model, nodes, rates,
                               request.recipe.base.compute);
  double largest = 0;
  std::string where;
  for (const JobCandidate& candidate : candidates_of(request, nodes, left_out)) {
    Plan plan = even_plan(request, candidate, nodes.ranks());
    const AxisExtents extents = extents_of(candidate);
    NodeMembers members(nodes);
    for (const AxisOrder& order : DistinctOrders(nodes).of(extents)) {
      plan.place = place_of(order, extents);
      const double price = forecast_step(plan, nodes, rates).seconds();
      for (const OnNode& here : {members.fewest(order, extents), members.fewest_at_best(extents)}) {
        const double ratio = bounds.seconds(candidate, request.recipe, here) / price;
        if (ratio <= largest) continue;
        largest = ratio;
        where = candidate.text() + " by " + order_text(order);
      }
    }
  }
  UNSCOPED_INFO("the largest of " << count << " nodes: " << where);
  return largest;
}

}  // namespace

TEST_CASE("no bound is above the price of its candidate") {
  Cluster products = small_cluster(3), links = small_cluster(3);
  for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
    for (Cluster* const cluster : {&products, &links})
      set_term(*cluster, static_cast<OperatorKind>(kind), 0, 0);
  set_term(products, OperatorKind::matmul, 1, 1e-8);
  // Groups of three ranks on nodes of four: some of the members are on one node, though 3 < 4 < 6.
  for (Level& level : links.levels) level.beta_seconds_per_byte = level.nodes == 1 ? 1e-12 : 1e-7;
  for (Cluster* const cluster : {&products, &links}) {
    cluster->classes.front().launch_seconds = 0;
    for (Level& level : cluster->levels) level.alpha_seconds = 0;
  }
  Cluster latencies = links;
  for (Level& level : latencies.levels) {
    level.alpha_seconds = level.nodes == 1 ? 1e-6 : 1e-3;
    level.beta_seconds_per_byte = 1e-15;
  }
  Cluster noisy = products;
  noisy.classes.front().jitter = 0.3;
  Cluster averaging = noisy;  // pieces of about a millisecond
  set_term(averaging, OperatorKind::matmul, 1, 1e-9);
  averaging.classes.front().jitter_exponent = 0.5;
  // Messages partly behind products: neither is much longer than the other.
  Cluster gpus = small_cluster(3);
  gpus.classes.front().device = "gpu";
  Cluster gpu_links = links;
  gpu_links.classes.front().device = "gpu";
  for (Config config : {gpt_input(), llama_input()})
    for (const index_t sequences : {9, 21, 24}) {  // cut evenly into 3 + 3 + 3, not 4 + 4 + 1
      config.batch.sequences = sequences;
      INFO(sequences << " sequences");
      for (const index_t count : {1, 3}) {
        CHECK(largest_bound(config, products, count) <= 1);
        CHECK(largest_bound(config, noisy, count) <= 1);
        CHECK(largest_bound(config, averaging, count) <= 1);
        CHECK(largest_bound(config, links, count) <= 1);
        CHECK(largest_bound(config, latencies, count) <= 1);
        CHECK(largest_bound(config, gpus, count) <= 1);
        CHECK(largest_bound(config, gpu_links, count) <= 1);
      }
    }
}

TEST_CASE("bounds of large groups have most of their messages, and no more") {
  Cluster cluster = small_cluster(24);
  for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
    set_term(cluster, static_cast<OperatorKind>(kind), 0, 0);
  cluster.classes.front().launch_seconds = 0;
  Config config = gpt_input();
  config.model.hidden = 192;
  config.model.ffn = 768;
  config.batch.sequences = 96;
  for (const double alpha : {1e-8, 1e-6, 1e-4})
    for (const index_t count : {5, 24}) {
      for (Level& level : cluster.levels) level.alpha_seconds = alpha;
      INFO(alpha << " s a message, " << count << " nodes");
      const double bound = largest_bound(config, cluster, count);
      CHECK(bound <= 1);
      if (alpha == 1e-4) CHECK(bound > 0.5);
    }
}

TEST_CASE("reach in closed form is that of a look at every member") {
  Cluster cluster = small_cluster(12);
  Level pair = cluster.levels.front();
  pair.name = "pair";
  pair.ranks = 2;
  cluster.levels.push_back(pair);
  Level five = cluster.levels.front();  // does not nest in two nodes under a switch
  five.nodes = 5;
  cluster.levels.push_back(five);
  Config config = gpt_input();
  config.batch.sequences = 48;
  const JobNodes nodes(cluster, {{0, 12}});
  const auto sorted = [](Reach reach) {
    std::sort(reach.levels.begin(), reach.levels.end(),
              [](const Reach::At& a, const Reach::At& b) { return a.level < b.level; });
    return reach;
  };
  for (const Cuboid cuboid : {Cuboid{3, 2, 2}, {2, 1, 3}, {6, 2, 1}, {1, 2, 3}, {12, 1, 1}}) {
    JobCandidate shape;
    shape.cuboid = cuboid;
    const auto& [p, q, r] = cuboid;
    shape.replicas = 48 / (p * q * r);
    Plan plan = even_plan(request_of(config), shape, nodes.ranks());
    for (const AxisOrder& order : all_orders(extents_of(shape))) {
      plan.place = place_of(order, extents_of(shape));
      const std::optional<EvenReach> even = EvenReach::of(plan, nodes);
      REQUIRE(even);
      for (index_t slot = 0; slot < 48; ++slot)
        for (std::size_t group = 0; group < ForecastTerms::kGroups; ++group) {
          const Coord at{slot / (p * q * r), slot / (q * r) % p, slot / r % q, slot % r};
          INFO(shape.text() << " by " << order_text(order) << ", slot " << slot << ", group "
                            << group);
          CHECK(sorted(even->reach(even->rank_of(at), static_cast<Group>(group))) ==
                sorted(nodes.reach(plan, at, static_cast<Group>(group))));
        }
    }
  }
}

TEST_CASE("a group waits for its farthest member") {
  // Replicas of 1 x 3 x 1 on nodes of four: the first lies on one node, the second on two.
  Cluster cluster = small_cluster(3);
  cluster.levels.back().alpha_seconds = 1e-3;
  cluster.levels[1].alpha_seconds = 1e-3;
  Config config = gpt_input();
  config.model.hidden = 48;
  config.model.heads = config.model.kv_heads = 6;
  config.batch.sequences = 12;
  JobCandidate shape;
  shape.replicas = 4;
  shape.cuboid = {1, 3, 1};
  ClusterRates rates(cluster);
  const JobNodes nodes(cluster, {{0, 3}});
  const ForecastTerms terms =
      forecast_step(even_plan(request_of(config), shape, nodes.ranks()), nodes, rates).terms;
  CHECK(terms.between[static_cast<std::size_t>(Group::j)] > 1e-3);
}

TEST_CASE("bounds follow samples as far as estimates do") {
  Cluster cluster = small_cluster(1);
  for (OperatorTable& table : cluster.classes.front().operators) {
    if (table.kind != OperatorKind::matmul) continue;
    table.fit = {};
    for (const double m : {8, 16, 32})
      for (const double n : {8, 16, 32})
        for (const double k : {8, 16, 32})
          table.samples.push_back({{m, n, k, 0, 0}, 1e-3 + 1e-8 * 2 * m * n * k, 0});
  }
  Config config = gpt_input();
  config.model.context = 128;
  config.batch.sequences = 64;
  CHECK(largest_bound(config, cluster, 1) <= 1);
}

TEST_CASE("groups inside a node have levels of their own, and a class's own level wins") {
  Cluster cluster = small_cluster(4);
  const auto seconds = [&](index_t q) {
    ClusterRates rates(cluster);
    const Plan plan = plan_of(gpt_input(), Grid{1, q, 1, {}, {}, {}});
    return forecast_step(plan, JobNodes(cluster, {{0, 1}}), rates).terms.messages_inside();
  };
  Level pair = cluster.levels.front();  // as small_cluster()'s node, faster and for two ranks
  pair.name = "pair";
  pair.ranks = 2;
  pair.beta_seconds_per_byte = 0;
  pair.alpha_seconds = 1e-9;
  const double two = seconds(2), four = seconds(4);
  cluster.levels.push_back(pair);
  CHECK(seconds(2) < 0.01 * two);
  CHECK(seconds(4) < four);
  CHECK(seconds(4) > 0.3 * four);  // two of three peers are in the other pair
  cluster.levels.pop_back();
  Level own = cluster.levels.front();
  own.node_class = "c1";
  own.alpha_seconds *= 3;
  own.beta_seconds_per_byte *= 3;
  cluster.levels.push_back(own);
  CHECK(seconds(2) == Approx(3 * two));
}

TEST_CASE("what the cluster's file lacks is said") {
  const auto why = [](const Cluster& cluster) {
    ClusterRates rates(cluster);
    const NodesSearched none = search_nodes(request_of(gpt_input()), {{0, 2}}, rates);
    CHECK(none.plans.empty());
    std::string text;
    for (const LeftOut& one : none.left_out) text += one.nearest + "\n";
    return text;
  };
  Cluster no_products = small_cluster(2), no_levels = small_cluster(2);
  std::erase_if(no_products.classes.front().operators,
                [](const OperatorTable& table) { return table.kind == OperatorKind::matmul; });
  CHECK_THAT(why(no_products), contains("class c1 has no [[operator]] of kind matmul for fp32"));
  no_levels.levels.clear();
  CHECK_THAT(why(no_levels), contains("no [[level]]"));
}

TEST_CASE("a job gets no more nodes of a class than its partition allows") {
  Cluster cluster = small_cluster(12);
  cluster.classes.front().partition = "low";
  SchedulerPartition low;
  low.name = "low";
  low.most_nodes = 5;
  cluster.scheduler.partitions.push_back(low);
  const auto counts = [&] {
    std::vector<index_t> nodes;
    for (const std::vector<JobPart>& set : node_sets(request_of(gpt_input()), cluster))
      nodes.push_back(set.front().nodes);
    return nodes;
  };
  const std::vector<index_t> few{1, 2, 3, 4, 5};
  CHECK(counts() == few);
  cluster.classes.front().partition.clear();  // then the one of jobs that name none counts
  CHECK(counts().back() == 12);
  cluster.scheduler.partitions.front().fallback = true;
  CHECK(counts() == few);
  cluster.classes.front().ranks_per_node = 1 << 30;
  CHECK_THROWS_AS(JobNodes(cluster, {{0, 2}}), Error);
}

TEST_CASE("what does not fit is left out with what it lacks") {
  const Cluster cluster = small_cluster(1, 0.02);
  ClusterRates rates(cluster);
  const NodesSearched none = search_nodes(request_of(gpt_input()), {{0, 1}}, rates);
  CHECK(none.plans.empty());
  REQUIRE(!none.left_out.empty());
  const auto memory = std::find_if(none.left_out.begin(), none.left_out.end(),
                                   [](const LeftOut& one) { return one.why == "memory"; });
  REQUIRE(memory != none.left_out.end());
  CHECK(memory->nearest.find("MiB of 0") != std::string::npos);
}

TEST_CASE("slower classes get less, and a job on both is faster than on either") {
  Cluster cluster = small_cluster(2);
  NodeClass slow = cluster.classes.front();
  slow.name = "c2";
  for (OperatorTable& table : slow.operators)
    for (double& term : table.fit.terms) term *= 2;
  cluster.classes.push_back(slow);
  for (Level& level : cluster.levels) level.beta_seconds_per_byte = 1e-12;
  ClusterRates rates(cluster);
  Config config = gpt_input();
  config.batch.sequences = 96;
  config.model.context = 64;
  const SearchRequest request = request_of(config);
  const double fast = search_nodes(request, {{0, 2}}, rates).plans.front().seconds(),
               both = search_nodes(request, {{0, 2}, {1, 2}}, rates).plans.front().seconds(),
               alone = search_nodes(request, {{1, 2}}, rates).plans.front().seconds();
  CHECK(alone > 1.8 * fast);
  CHECK(both < 0.8 * fast);
}
