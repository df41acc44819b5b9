// Orders of axes (forecast/axis_order.hpp): places that say them, those that differ on a set
// of nodes, and the search that takes the best of all.
#include "forecast/axis_order.hpp"

#include <numeric>
#include <set>

#include "forecast/even_reach.hpp"
#include "forecast/forecaster.hpp"
#include "forecast/plan_search.hpp"
#include "support/catch.hpp"
#include "support/forecast_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

JobCandidate candidate_of(index_t replicas, const Cuboid& cuboid) {
  JobCandidate candidate;
  candidate.replicas = replicas;
  candidate.cuboid = cuboid;
  return candidate;
}

/// All that any rank may ask, by world rank: two orders with the same answers cost the same.
std::vector<Reach> all_reaches(const Plan& plan, const JobNodes& nodes, const AxisOrder& order) {
  const EvenReach even(plan, nodes, order);
  std::vector<Reach> all;
  for (index_t rank = 0; rank < nodes.ranks(); ++rank)
    for (std::size_t group = 0; group < ForecastTerms::kGroups; ++group)
      all.push_back(even.reach(rank, static_cast<Group>(group)));
  return all;
}

/// Seconds of the best plan, by every shape with every order of its axes; each priced as a run's
/// plan is, by its places.
double best_of_all(const SearchRequest& request, index_t count, ClusterRates& rates) {
  const JobNodes nodes(rates.cluster(), {{0, count}});
  LeftOutMap left_out;
  double best = std::numeric_limits<double>::infinity();
  for (const JobCandidate& candidate : candidates_of(request, nodes, left_out)) {
    Plan plan = even_plan(request, candidate, nodes.ranks());
    for (const AxisOrder& order : all_orders(extents_of(candidate))) {
      plan.place = place_of(order, extents_of(candidate));
      best = std::min(best, forecast_step(plan, nodes, rates).seconds());
    }
  }
  return best;
}

/// Few tokens and many weights: what replicas and slabs sum is more than what linears gather.
Config weighty_input(index_t sequences) {
  Config config = gpt_input();
  config.model.hidden = 96;
  config.model.ffn = 768;
  config.model.context = 4;
  config.batch.sequences = sequences;
  return config;
}

}  // namespace

TEST_CASE("a plan's places say their order of axes, and no others do") {
  for (const auto& [replicas, cuboid] :
       {std::pair{index_t{2}, Cuboid{3, 2, 2}}, {2, {1, 2, 1}}, {1, {2, 1, 3}}, {4, {1, 1, 1}}}) {
    const JobCandidate shape = candidate_of(replicas, cuboid);
    const AxisExtents extents = extents_of(shape);
    const index_t ranks = replicas * cuboid[0] * cuboid[1] * cuboid[2];
    Plan plan = even_plan(request_of(weighty_input(24)), shape, ranks);
    CHECK(order_of(plan) == usual_order(extents));
    CHECK(!other_order_of(plan));
    std::set<std::vector<int>> places;
    for (const AxisOrder& order : all_orders(extents)) {
      plan.place = place_of(order, extents);
      plan.check();
      places.insert(plan.place);
      CHECK(order_of(plan) == order);
      CHECK(other_order_of(plan).has_value() == (order != usual_order(extents)));
    }
    CHECK(places.size() == all_orders(extents).size());
    plan.place.resize(static_cast<std::size_t>(ranks));
    std::iota(plan.place.begin(), plan.place.end(), 0);
    CHECK(!other_order_of(plan));  // the usual one, written out
    if (ranks < 5) continue;
    std::swap(plan.place[1], plan.place.back());
    CHECK(!order_of(plan));
  }
  const JobCandidate shape = candidate_of(2, {1, 2, 3});
  CHECK(place_of({Axis::d, Axis::k, Axis::j}, extents_of(shape)) ==
        std::vector<int>{0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11});
}

TEST_CASE("every order reaches as one of the distinct orders does, and these are few") {
  Cluster cluster = small_cluster(12);
  Level five = cluster.levels[1];  // does not nest in two nodes under a switch
  five.nodes = 5;
  Cluster odd = cluster, parted = cluster, eight = cluster;
  eight.classes.front().ranks_per_node = 8;  // 3 x 2 fit, and do not divide them
  odd.levels.push_back(five);
  Level pair = cluster.levels.front();
  pair.ranks = 3;  // of four on a node
  odd.levels.push_back(pair);
  pair.ranks = 2;
  parted.levels.push_back(pair);
  std::size_t all = 0, few = 0;
  for (const Cluster* const one : {&cluster, &odd, &parted, &eight})
    for (const index_t count : {1, 4, 6, 12}) {
      const JobNodes nodes(*one, {{0, count}});
      LeftOutMap left_out;
      SearchRequest request = request_of(weighty_input(48));
      request.micro_free = request.recompute_free = false;
      for (const JobCandidate& candidate : candidates_of(request, nodes, left_out)) {
        const AxisExtents extents = extents_of(candidate);
        const Plan plan = even_plan(request, candidate, nodes.ranks());
        const std::vector<AxisOrder> distinct = DistinctOrders(nodes).of(extents);
        REQUIRE(distinct.front() == usual_order(extents));
        std::vector<std::vector<Reach>> known;
        for (const AxisOrder& order : distinct) known.push_back(all_reaches(plan, nodes, order));
        for (const AxisOrder& order : all_orders(extents)) {
          ++all;
          const std::vector<Reach> own = all_reaches(plan, nodes, order);
          INFO(candidate.text() << " by " << order_text(order) << " on " << count << " nodes");
          CHECK(std::find(known.begin(), known.end(), own) != known.end());
        }
        few += distinct.size();
      }
    }
  CHECK(few < all);
  const JobNodes node(cluster, {{0, 1}}), two(cluster, {{0, 2}});
  CHECK(DistinctOrders(node).of({1, 2, 2, 1}).size() == 1);
  CHECK(DistinctOrders(two).of({1, 2, 2, 2}).size() == 3);  // which of three is between nodes
}

TEST_CASE("the search's best plan is that of all shapes with all orders of axes") {
  int others = 0;
  for (const auto& [sequences, count] :
       {std::pair{24, 1}, {24, 2}, {24, 3}, {24, 6}, {9, 3}, {96, 6}, {96, 24}}) {
    Cluster cluster = small_cluster(24);
    Level pair = cluster.levels.front();
    pair.ranks = 2;
    pair.beta_seconds_per_byte = 1e-11;
    if (count == 3) cluster.levels.push_back(pair);
    for (const double alpha : {1e-8, 1e-5}) {
      for (Level& level : cluster.levels) level.alpha_seconds = alpha;
      ClusterRates rates(cluster);
      SearchRequest request = request_of(weighty_input(sequences));
      request.kept = 1;
      request.most_priced = 1 << 20;
      if (count > 6) request.micro_free = request.recompute_free = false;
      const NodesSearched found = search_nodes(request, {{0, count}}, rates);
      INFO(sequences << " sequences on " << count << " nodes, " << alpha << " s a message");
      REQUIRE(!found.plans.empty());
      CHECK(found.complete);
      const FoundPlan& best = found.plans.front();
      CHECK(best.seconds() == Approx(best_of_all(request, count, rates)).epsilon(1e-9));
      CHECK(forecast_step(best.plan, JobNodes(cluster, {{0, count}}), rates).seconds() ==
            best.seconds());
      CHECK(best.usual_seconds.has_value() == other_order_of(best.plan).has_value());
      if (!best.usual_seconds) continue;
      ++others;
      CHECK(*best.usual_seconds > best.seconds());
    }
  }
  CHECK(others > 0);
}

TEST_CASE("replicas sit together where they sum more than a cuboid gathers, and else do not") {
  Cluster cluster = small_cluster(2);
  cluster.classes.front().ranks_per_node = 2;
  const auto found = [&](index_t sequences, index_t context) {
    Config config = weighty_input(sequences);
    config.model.context = context;
    SearchRequest request = request_of(config);
    request.replicas = 2;
    request.cuboid = Cuboid{1, 2, 1};
    ClusterRates rates(cluster);
    return search_nodes(request, {{0, 2}}, rates).plans.front();
  };
  const FoundPlan few = found(2, 4), many = found(64, 64);
  CHECK(few.plan.place == std::vector<int>{0, 2, 1, 3});
  CHECK(*few.usual_seconds > 1.5 * few.seconds());
  CHECK(many.plan.place.empty());
  CHECK(!many.usual_seconds);
  // Links alike: no order is better, and the usual one is taken.
  for (Level& level : cluster.levels) {
    level.beta_seconds_per_byte = 1e-9;
    level.nics_per_node = 0;
  }
  CHECK(found(2, 4).plan.place.empty());
}

TEST_CASE("a step at another order is that of the plan with its places, to the last digit") {
  const Cluster cluster = small_cluster(6);
  ClusterRates rates(cluster);
  const JobNodes nodes(cluster, {{0, 6}});
  LeftOutMap left_out;
  SearchRequest request = request_of(weighty_input(7));
  request.micro_free = request.recompute_free = false;
  std::vector<Plan> plans;
  for (const JobCandidate& candidate : candidates_of(request, nodes, left_out))
    plans.push_back(even_plan(request, candidate, nodes.ranks()));
  // The rank with the largest parts is neither the first nor the last: the order says its number,
  // and with it what it sends where all ranks sum over a tree.
  plans.push_back(plan_of(weighty_input(7), Grid{3, 2, 4, {1, 2, 4}, {1, 3}, {1, 2, 1, 1}}));
  for (const Plan& plan : plans) {
    Forecaster forecaster(plan, nodes, rates);
    const AxisExtents extents =
        axis_extents(std::ssize(plan.replicas), plan.replicas.front().cuboid);
    for (const AxisOrder& order : all_orders(extents)) {
      Plan placed = plan;
      placed.place = place_of(order, extents);
      INFO(plan.mesh().describe() << " by " << order_text(order));
      CHECK(forecaster.step(order).seconds() == forecast_step(placed, nodes, rates).seconds());
    }
  }
}
