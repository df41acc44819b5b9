// What of messages is waited for: one rule for all forecasts, never less than they take on the
// wire, of the replica whose way is the longest.
#include <numeric>

#include "hetero/cost/exposed_messages.hpp"
#include "support/catch.hpp"
#include "support/forecast_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

constexpr auto over(Group group) { return static_cast<std::size_t>(group); }

/// Seconds of all messages, hidden or not.
double on_wire(const ForecastTerms& terms) {
  return std::accumulate(terms.inside.begin(), terms.inside.end(), 0.0) +
         std::accumulate(terms.between.begin(), terms.between.end(), 0.0);
}

/// Nodes of GPUs with links so many times as slow as small_cluster()'s.
Cluster gpu_cluster(index_t nodes, double slower) {
  Cluster cluster = small_cluster(nodes);
  cluster.classes.front().device = "gpu";
  for (Level& level : cluster.levels) level.beta_seconds_per_byte *= slower;
  return cluster;
}

Config deep_input(index_t sequences) {
  Config config = gpt_input();
  config.model.context = 64;
  config.batch.sequences = sequences;
  config.aggregate.method = AggregateMethod::mean;
  return config;
}

/// A class with one node, and a level inside it that no other class has.
void add_class(Cluster& cluster, const std::string& name, double computing, double link) {
  NodeClass one = small_cluster(1).classes.front();
  one.name = name;
  for (OperatorTable& table : one.operators)
    for (double& term : table.fit.terms) term *= computing;
  Level inside = small_cluster(1).levels.front();
  inside.name = "inside " + name;
  inside.node_class = name;
  inside.beta_seconds_per_byte *= link;
  cluster.classes.push_back(one);
  cluster.levels.push_back(inside);
}

/// Classes of unlike computing and unlike links, in this order in the file.
Cluster unlike_classes(const std::vector<std::size_t>& order) {
  Cluster cluster = small_cluster(1);
  cluster.classes.clear();
  std::erase_if(cluster.levels, [](const Level& level) { return level.nodes == 1; });
  const std::array<std::tuple<const char*, double, double>, 3> kinds{
      {{"slow", 1.2, 1}, {"usual", 1, 40}, {"far", 0.9, 4000}}};
  for (const std::size_t at : order)
    add_class(cluster, std::get<0>(kinds[at]), std::get<1>(kinds[at]), std::get<2>(kinds[at]));
  return cluster;
}

}  // namespace

TEST_CASE("exposed messages: a fifth, or what is longer than the computing beside") {
  const MessageCover gpus = message_cover(AggregateMethod::mean, Recompute::none, 2, true);
  CHECK(gpus.last_backward == Approx(1.0 / 3));
  const auto exposed = [&](double inside, double replicas, double computing) {
    const auto [own, all] = exposed_messages({inside, replicas}, computing, gpus);
    return std::pair(own, all);
  };
  CHECK(exposed(1, 0, 10).first == Approx(0.2));
  CHECK(exposed(16, 0, 4).first == Approx(12));  // four fifths are longer than the computing
  CHECK(exposed(0, 1, 30).second == Approx(0.2));
  CHECK(exposed(0, 16, 6).second == Approx(14));   // a third of the computing is beside them
  CHECK(exposed(10, 10, 8).second == Approx(10));  // nothing is left beside the other ones
  for (const double inside : {0.1, 1.0, 10.0})
    for (const double replicas : {0.1, 1.0, 10.0})
      for (const double computing : {0.1, 1.0, 10.0}) {
        const auto [own, all] = exposed(inside, replicas, computing);
        CHECK(computing + own + all >= (inside + replicas) * (1 - 1e-12));
        const auto [more_own, more_all] = exposed(inside, replicas, 1.1 * computing);
        CHECK(1.1 * computing + more_own + more_all >= (computing + own + all) * (1 - 1e-12));
      }
  for (const MessageCover& none :
       {message_cover(AggregateMethod::mean, Recompute::none, 1, false), MessageCover{}})
    CHECK(exposed_messages({3, 4}, 100, none).inside_replica == 3);
  const MessageCover adasum = message_cover(AggregateMethod::adasum, Recompute::none, 1, true);
  CHECK(exposed_messages({0, 4}, 100, adasum).over_replicas == 4);
}

TEST_CASE("no step on GPUs is shorter than its messages, and none hides more than four fifths") {
  for (const double slower : {1e-3, 1.0, 30.0, 1000.0})
    for (const index_t replicas : {1, 2}) {
      const Cluster cluster = gpu_cluster(4, slower);
      ClusterRates rates(cluster);
      const Plan plan = plan_of(deep_input(16), Grid{8 / replicas, 1, 2, {}, {}, {}}, replicas);
      const ForecastTerms terms = forecast_step(plan, JobNodes(cluster, {{0, 4}}), rates).terms;
      INFO(slower << " times as slow, " << replicas << " replicas");
      REQUIRE(terms.products() > 0);
      CHECK(terms.sum() >= on_wire(terms));
      CHECK(terms.exposed(Group::i) >= 1 - kHidden - 1e-12);
      CHECK(terms.exposed(Group::d) >= 1 - kHidden - 1e-12);
      CHECK(terms.exposed(Group::k) == 1);
      if (slower < 1) CHECK(terms.exposed(Group::i) == Approx(1 - kHidden));
      if (slower > 100) CHECK(terms.exposed(Group::i) > 0.9);
      if (slower < 1 && replicas > 1) CHECK(terms.exposed(Group::d) == Approx(1 - kHidden));
    }
}

TEST_CASE("ranks of CPUs wait for all messages") {
  Cluster cluster = gpu_cluster(4, 1);
  const Plan plan = plan_of(deep_input(16), Grid{4, 1, 2, {}, {}, {}}, 2);
  cluster.classes.front().device = "cpu";
  ClusterRates rates(cluster);
  const ForecastTerms terms = forecast_step(plan, JobNodes(cluster, {{0, 4}}), rates).terms;
  CHECK(terms.messages_inside() + terms.messages_between() == Approx(on_wire(terms)));
}

TEST_CASE("replicas count with their own messages, in any order of classes") {
  std::vector<std::size_t> order{0, 1, 2};
  std::vector<double> seconds, found;
  do {
    const Cluster cluster = unlike_classes(order);
    ClusterRates rates(cluster);
    const std::vector<JobPart> parts{{0, 1}, {1, 1}, {2, 1}};
    const JobNodes nodes(cluster, parts);
    const Plan plan = plan_of(deep_input(24), Grid{1, 2, 2, {}, {}, {}}, 3);
    const ForecastTerms terms = forecast_step(plan, nodes, rates).terms;
    seconds.push_back(terms.sum());
    // Over j and k the class with the slowest links has the longest way.
    CHECK(terms.inside[over(Group::j)] + terms.inside[over(Group::k)] > terms.compute());
    SearchRequest request = request_of(deep_input(24));
    request.replicas = 3;
    request.cuboid = Cuboid{1, 2, 2};
    found.push_back(search_nodes(request, parts, rates).plans.front().seconds());
  } while (std::next_permutation(order.begin(), order.end()));
  REQUIRE(seconds.size() == 6);
  // But for the sum of a few numbers over all ranks, of which parts depend on a rank's number.
  for (const double one : seconds) CHECK(one == Approx(seconds.front()).epsilon(1e-4));
  for (const double one : found) CHECK(one == Approx(found.front()).epsilon(1e-4));
}

TEST_CASE("replicas that meet wait for the one whose way is the longest") {
  // Replicas of one node each; one node's own way to the other is far slower.
  Cluster cluster = unlike_classes({0, 1});
  cluster.levels.push_back(cluster.levels.front());
  cluster.levels.back().name = "slow nodes";
  cluster.levels.back().node_class = "slow";
  cluster.levels.back().beta_seconds_per_byte = 1e-6;
  for (const bool turned : {false, true}) {
    Cluster other = cluster;
    if (turned) std::swap(other.classes[0], other.classes[1]);
    ClusterRates rates(other);
    const Plan plan = plan_of(deep_input(8), Grid{1, 2, 2, {}, {}, {}}, 2);
    const ForecastTerms terms = forecast_step(plan, JobNodes(other, {{0, 1}, {1, 1}}), rates).terms;
    const auto bytes = static_cast<double>(step_traffic(plan, Coord{}).on(Group::d));
    CHECK(terms.between[over(Group::d)] > 0.9e-6 * bytes);
  }
}
