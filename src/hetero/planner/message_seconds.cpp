#include "hetero/planner/message_seconds.hpp"

#include "comm/cost.hpp"
#include "hetero/cost/traffic.hpp"

namespace t3d {
namespace {

constexpr index_t kLinears = 4;  // of a block, and so its buckets of matrices

/// Messages that follow each other at a rank in one collective (comm/cost.hpp).
index_t rounds(index_t members) {
  if (members <= kFlatRanks) return members - 1;
  return rounds_of(static_cast<int>(members));
}

class Price {
 public:
  Price(const Plan& plan, const Coord& coord, const Speeds& speeds, const NodeCrossings& crossings,
        const CostMemoPtr& memo)
      : plan_(plan),
        cut_(plan.replica(coord.d)),
        traffic_(step_traffic(plan, coord, memo)),
        speeds_(speeds),
        crossings_(crossings) {
    for (const auto& leaf : cut_.leaves) micros_ += std::ssize(leaf);
  }

  [[nodiscard]] MessageSeconds all() const {
    const auto& [p, q, r] = cut_.cuboid;
    const index_t layers = plan_.model.layers, places = p * q * r;
    const auto [i, j, k, world] = crossings_;
    MessageSeconds seconds;
    seconds.weights.inside_replica = on(Group::i, p, i, weight_calls()) +
                                     on(Group::ij, p * q, i || j, 2) +
                                     on(Group::ik, p * r, i || k, 2);
    seconds.activations = on(Group::j, q, j, micros_ * layers * linear_calls()) +
                          on(Group::k, r, k, micros_ * layers * (linear_calls() + norm_calls())) +
                          on(Group::jk, q * r, j || k, micros_);
    const index_t replicas = std::ssize(plan_.replicas);
    seconds.weights.over_replicas =
        on(Group::d, replicas, world, replicas > 1 ? kLinears * layers : 0);
    seconds.update =
        on(Group::cuboid, places, i || j || k, 1) + on(Group::world, plan_.ranks, world, 2);
    return seconds;
  }

 private:
  /// Of all linears of a block in a micro-batch: a gather and a reduce-scatter in each direction,
  /// half of them over j, half over k.
  [[nodiscard]] index_t linear_calls() const {
    const index_t again = plan_.recompute == Recompute::block ? kLinears : 0;
    return 2 * kLinears + again + (plan_.keep_inputs ? 0 : kLinears / 2);
  }
  /// Statistics of two norms, forward and backward.
  [[nodiscard]] index_t norm_calls() const { return plan_.recompute == Recompute::block ? 6 : 4; }
  [[nodiscard]] index_t weight_calls() const {
    const index_t gathers = plan_.keep_weights ? 1 : 2 * micros_;
    return plan_.model.layers * kLinears * (gathers + std::ssize(cut_.leaves));
  }
  [[nodiscard]] double on(Group group, index_t members, bool crosses, index_t calls) const {
    if (members < 2) return 0;
    const LinkSpeed& link = crosses ? speeds_.between : speeds_.inside;
    return link.alpha_seconds * static_cast<double>(calls * rounds(members)) +
           link.beta_seconds_per_byte * static_cast<double>(traffic_.on(group));
  }

  const Plan& plan_;
  const ReplicaPlan& cut_;
  const TrafficTable traffic_;
  const Speeds& speeds_;
  const NodeCrossings crossings_;
  index_t micros_ = 0;
};

}  // namespace

MessageSeconds message_seconds(const Plan& plan, const Coord& coord, const Speeds& speeds,
                               const NodeCrossings& crossings, const CostMemoPtr& memo) {
  return Price(plan, coord, speeds, crossings, memo).all();
}

}  // namespace t3d
