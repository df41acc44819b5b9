#include "hetero/forecast/step_forecast.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/error.hpp"
#include "hetero/cost/traffic.hpp"
#include "hetero/forecast/even_reach.hpp"
#include "hetero/planner/slab_key.hpp"

namespace t3d {
namespace {

using Seconds = std::array<double, kOperatorKinds>;

double sum_of(const Seconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0);
}

/// What ranks alike compute, and how many operators they start.
struct RankOperators {
  Seconds operators{};
  double host = 0;
};

std::size_t largest_part(const Partition& cut) {
  const std::vector<index_t> sizes = cut.sizes();
  return static_cast<std::size_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
}

class Forecast {
 public:
  Forecast(const Plan& plan, const JobNodes& nodes, ClusterRates& rates)
      : plan_(plan), nodes_(nodes), rates_(rates), keys_(plan) {
    if (plan.ranks > nodes.ranks())
      throw_error(ExitCode::config, "a plan of {} ranks on nodes for {}", plan.ranks,
                  nodes.ranks());
    if (EvenReach::fits(plan, nodes)) even_.emplace(plan, nodes);
  }

  StepForecast run() {
    double all = 0;
    const bool one_class = nodes_.parts().size() == 1;
    for (index_t d = 0; d < std::ssize(plan_.replicas); ++d) {
      // A replica like the one before on nodes alike takes as long.
      if (d == 0 || !one_class || plan_.replica(d) != plan_.replica(d - 1)) add_replica(d);
      const auto& [p, q, r] = plan_.replica(d).cuboid;
      slot_ += p * q * r;
      all += last_compute_;
    }
    StepForecast result{worst_, 1};
    const double mean = all / static_cast<double>(plan_.replicas.size());
    if (mean > 0) result.imbalance = worst_.compute() / mean;
    return result;
  }

 private:
  static constexpr index_t kLooks = 64, kLooksOneByOne = 4;

  [[nodiscard]] JobNodes::Seat seat(index_t slot) const {
    return nodes_.seat(plan_.place.empty() ? slot : plan_.place[static_cast<std::size_t>(slot)]);
  }

  const RankOperators& rank_seconds(const Coord& coord, std::size_t node_class,
                                    const SlabKeys::Key& slab) {
    SlabKeys::Key key = slab;
    key.push_back(static_cast<index_t>(node_class));
    add_rank_key(plan_, coord, plan_.replica(coord.d).tokens.back().size(coord.i), *memo_, key);
    const auto [entry, is_new] = ranks_.try_emplace(std::move(key));
    if (!is_new) return entry->second;
    for (const OperatorCall& call : step_calls(plan_, coord, memo_)) {
      entry->second.operators[static_cast<std::size_t>(call.kind)] +=
          call.times * rates_.seconds(node_class, plan_.compute, call);
      entry->second.host += call.times * rates_.launch_seconds(node_class);
    }
    return entry->second;
  }

  void add_replica(index_t d) {
    const auto& [p, q, r] = plan_.replica(d).cuboid;
    const bool one_class = nodes_.parts().size() == 1;
    ForecastTerms slowest;
    SlabKeys::Key before;
    for (index_t i = 0; i < p; ++i) {
      const SlabKeys::Key slab = keys_.key(d, i);
      if (one_class && slab == before) continue;
      before = slab;
      RankOperators meet;
      for (index_t at = 0; at < q * r; ++at) {
        const JobNodes::Seat here = seat(slot_ + i * q * r + at);
        const RankOperators& own = rank_seconds({d, i, at / r, at % r}, here.node_class, slab);
        for (std::size_t kind = 0; kind < kOperatorKinds; ++kind)
          meet.operators[kind] = std::max(meet.operators[kind], own.operators[kind]);
        meet.host = std::max(meet.host, own.host);
      }
      if (sum_of(meet.operators) + meet.host <= slowest.compute() + slowest.host) continue;
      slowest.operators = meet.operators;
      slowest.host = meet.host;
    }
    last_compute_ = slowest.compute();
    // Replicas alike have messages alike, but for who is on which node: the slowest one's count.
    if (d > 0 && slowest.compute() + slowest.host <= worst_.compute() + worst_.host) return;
    add_messages(d, slowest);
    if (slowest.sum() > worst_.sum()) worst_ = slowest;
  }

  /// Of a rank in the largest slab with the largest widths; each group as far as its farthest
  /// member: all wait for that one.
  void add_messages(index_t d, ForecastTerms& terms) {
    const ReplicaPlan& replica = plan_.replica(d);
    const Coord coord{d, static_cast<index_t>(largest_part(replica.tokens.back())),
                      static_cast<index_t>(largest_part(replica.ffn)),
                      static_cast<index_t>(largest_part(replica.hidden))};
    const auto& [p, q, r] = replica.cuboid;
    const bool on_gpu = nodes_.cluster()
                            .classes[seat(slot_ + (coord.i * q + coord.j) * r + coord.k).node_class]
                            .device != "cpu";
    const TrafficTable traffic = step_traffic(plan_, coord, memo_);
    for (std::size_t group = 0; group < ForecastTerms::kGroups; ++group) {
      const auto over = static_cast<Group>(group);
      if (traffic.on(over) == 0) continue;
      const bool weights = over == Group::i || over == Group::ij || over == Group::ik;
      const double exposed = weights && on_gpu ? 1 - kHidden : 1;
      const auto [inside, between] = slowest_reach(traffic, over, d);
      terms.inside[group] += exposed * inside;
      terms.between[group] += exposed * between;
    }
  }

  struct GroupSeconds {
    double inside = 0, between = 0;
  };

  /// Where cuboids do not nest in nodes, groups of one axis lie on different numbers of them.
  /// Looked at are kLooks ranks all over the plan, or the replica where there is no closed form.
  GroupSeconds slowest_reach(const TrafficTable& traffic, Group group, index_t d) {
    const auto& [p, q, r] = plan_.replica(d).cuboid;
    const bool all = group == Group::world || group == Group::cuboid;
    const index_t places = even_ ? p * q * r * std::ssize(plan_.replicas) : p * q * r;
    const index_t looks = std::min<index_t>(places, even_ ? kLooks : all ? 1 : kLooksOneByOne);
    GroupSeconds slowest;
    std::vector<Reach> seen;
    for (index_t look = 0; look < looks; ++look) {
      const index_t at = places <= looks ? look : spread(look, places);
      Reach reach = even_ ? even_->reach(at, group)
                          : nodes_.reach(plan_, {d, at / (q * r), at / r % q, at % r}, group);
      if (std::find(seen.begin(), seen.end(), reach) != seen.end()) continue;
      GroupSeconds own;
      for (const Reach::At& level : reach.levels)
        (level.between ? own.between : own.inside) += level_seconds(traffic, group, reach, level);
      if (own.inside + own.between > slowest.inside + slowest.between) slowest = own;
      seen.push_back(std::move(reach));
    }
    return slowest;
  }

  /// Multiples of the golden ratio: no two are close, and no stride of a mesh is theirs.
  static index_t spread(index_t look, index_t places) {
    const double part = static_cast<double>(look) * 0.6180339887498949;
    return static_cast<index_t>((part - std::floor(part)) * static_cast<double>(places));
  }

  [[nodiscard]] double level_seconds(const TrafficTable& traffic, Group group, const Reach& reach,
                                     const Reach::At& at) const {
    const double part = nodes_.oversubscribed(at.level) * static_cast<double>(at.peers) /
                        static_cast<double>(reach.peers);
    double seconds = 0;
    for (std::size_t verb = 0; verb < kVerbs; ++verb)
      for (const TrafficCalls& calls : traffic.calls(static_cast<Verb>(verb), group)) {
        if (calls.calls == 0) continue;
        const auto times = static_cast<double>(calls.calls);
        seconds +=
            times * rates_.level(at.level).seconds(static_cast<Verb>(verb), at.peers,
                                                   part * static_cast<double>(calls.bytes) / times,
                                                   static_cast<double>(reach.groups));
      }
    return seconds;
  }

  const Plan& plan_;
  const JobNodes& nodes_;
  ClusterRates& rates_;
  SlabKeys keys_;
  std::optional<EvenReach> even_;
  CostMemoPtr memo_ = std::make_shared<CostMemo>();
  std::map<SlabKeys::Key, RankOperators> ranks_;
  index_t slot_ = 0;  // first one of this replica
  double last_compute_ = 0;
  ForecastTerms worst_;
};

}  // namespace

double ForecastTerms::compute() const { return sum_of(operators); }
double ForecastTerms::messages_inside() const {
  return std::accumulate(inside.begin(), inside.end(), 0.0);
}
double ForecastTerms::messages_between() const {
  return std::accumulate(between.begin(), between.end(), 0.0);
}
double ForecastTerms::sum(const ForecastFactors& factors) const {
  return (factors.compute * compute() + factors.host * host + factors.inside * messages_inside() +
          factors.between * messages_between()) /
         (1 - factors.waiting);
}

ClusterRates::ClusterRates(const Cluster& cluster) : cluster_(cluster) {
  for (const NodeClass& one : cluster.classes)
    operators_.emplace_back(std::make_shared<const OperatorEstimator>(one));
  for (const Level& level : cluster.levels) levels_.emplace_back(level);
}

double ClusterRates::seconds(std::size_t node_class, ComputeType format, const OperatorCall& call) {
  CachedEstimator& own = operators_[node_class];
  if (call.kind != OperatorKind::matmul)
    return own.estimator().seconds(call.kind, format,
                                   std::span(call.shape).first(form_of(call.kind).columns.size()));
  return own.matmul_seconds(
      format, {static_cast<index_t>(call.shape[0]), static_cast<index_t>(call.shape[1]),
               static_cast<index_t>(call.shape[2]), call.shape[3] != 0, call.shape[4] != 0});
}

StepForecast forecast_step(const Plan& plan, const JobNodes& nodes, ClusterRates& rates) {
  return Forecast(plan, nodes, rates).run();
}

}  // namespace t3d
