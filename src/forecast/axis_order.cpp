#include "forecast/axis_order.hpp"

#include <algorithm>
#include <numeric>

namespace t3d {
namespace {

constexpr std::array kInnermostFirst{Axis::k, Axis::j, Axis::i, Axis::d};

std::size_t index_of(Axis axis) { return static_cast<std::size_t>(axis); }

}  // namespace

AxisOrder usual_order(const AxisExtents& extents) {
  AxisOrder order;
  for (const Axis axis : kInnermostFirst)
    if (extents[index_of(axis)] > 1) order.push_back(axis);
  return order;
}

Strides strides_of(const AxisOrder& order, const AxisExtents& extents) {
  Strides strides{1, 1, 1, 1};
  index_t ranks = 1;
  for (const Axis axis : order) {
    strides[index_of(axis)] = ranks;
    ranks *= extents[index_of(axis)];
  }
  return strides;
}

std::vector<int> place_of(const AxisOrder& order, const AxisExtents& extents) {
  if (order == usual_order(extents)) return {};
  const auto& [to_i, to_j, to_k, to_d] = strides_of(order, extents);
  const auto& [p, q, r, replicas] = extents;
  std::vector<int> place;
  place.reserve(static_cast<std::size_t>(p * q * r * replicas));
  for (index_t d = 0; d < replicas; ++d)
    for (index_t i = 0; i < p; ++i)
      for (index_t j = 0; j < q; ++j)
        for (index_t k = 0; k < r; ++k)
          place.push_back(static_cast<int>(d * to_d + i * to_i + j * to_j + k * to_k));
  return place;
}

std::optional<AxisOrder> order_of(const Plan& plan) {
  const Cuboid& cuboid = plan.replicas.front().cuboid;
  if (!std::all_of(plan.replicas.begin(), plan.replicas.end(),
                   [&](const ReplicaPlan& replica) { return replica.cuboid == cuboid; }))
    return std::nullopt;
  const AxisExtents extents = axis_extents(std::ssize(plan.replicas), cuboid);
  AxisOrder order = usual_order(extents);
  if (plan.place.empty()) return order;
  // Where the second member along each axis sits, says the only order that it can be.
  const Strides slots = strides_of(order, extents);
  std::sort(order.begin(), order.end(), [&](Axis a, Axis b) {
    return plan.place[static_cast<std::size_t>(slots[index_of(a)])] <
           plan.place[static_cast<std::size_t>(slots[index_of(b)])];
  });
  std::vector<int> place = place_of(order, extents);
  if (place.empty()) {  // the usual one, written out
    place.resize(plan.place.size());
    std::iota(place.begin(), place.end(), 0);
  }
  if (place != plan.place) return std::nullopt;
  return order;
}

std::optional<AxisOrder> other_order_of(const Plan& plan) {
  if (plan.place.empty()) return std::nullopt;
  std::optional<AxisOrder> order = order_of(plan);
  if (!order) return std::nullopt;
  const AxisExtents extents = axis_extents(std::ssize(plan.replicas), plan.replicas.front().cuboid);
  if (*order == usual_order(extents)) return std::nullopt;
  return order;
}

std::string order_text(const AxisOrder& order) {
  std::string text;
  for (const Axis axis : order) {
    if (!text.empty()) text += ' ';
    text += name_of(axis);
  }
  return text;
}

DistinctOrders::DistinctOrders(const JobNodes& nodes) {
  const Cluster& cluster = nodes.cluster();
  const NodeClass& own = cluster.classes[nodes.parts().front().node_class];
  const index_t on_node = own.ranks_per_node;
  if (nodes.nodes() > 1) edges_.push_back({on_node, on_node});
  for (const Level& level : cluster.levels) {
    if (level.nodes == 0 || (!level.node_class.empty() && level.node_class != own.name)) continue;
    if (level.ranks > 0 && level.ranks < on_node)
      edges_.push_back(
          {std::gcd(level.ranks, on_node), on_node % level.ranks == 0 ? level.ranks : on_node});
    else if (level.ranks == 0 && level.nodes > 1 && level.nodes < nodes.nodes())
      edges_.push_back({level.nodes * on_node, level.nodes * on_node});
  }
}

// An axis whose members are all inside one part of an edge, or each in another, is so wherever else
// it stands between the same edges: parts begin at multiples of its whole length, or of its steps.
// So it counts which edges part its members; where an edge cuts through them, the stride does, too.
DistinctOrders::Key DistinctOrders::key(const AxisOrder& order, const AxisExtents& extents) const {
  const Strides strides = strides_of(order, extents);
  Key key{};
  for (const Axis axis : order) {
    const index_t stride = strides[index_of(axis)], length = stride * extents[index_of(axis)];
    index_t edges = 0;
    for (const Edge& edge : edges_) {
      if (edge.inner % length == 0) continue;
      if (stride % edge.outer == 0) {
        ++edges;
        continue;
      }
      edges = -stride;
      break;
    }
    key[index_of(axis)] = edges;
  }
  return key;
}

std::vector<AxisOrder> DistinctOrders::of(const AxisExtents& extents) const {
  const AxisOrder usual = usual_order(extents);
  std::vector<std::size_t> turn(usual.size());
  std::iota(turn.begin(), turn.end(), std::size_t{0});
  std::vector<AxisOrder> orders;
  std::vector<Key> keys;
  do {
    AxisOrder order;
    for (const std::size_t axis : turn) order.push_back(usual[axis]);
    const Key own = key(order, extents);
    if (std::find(keys.begin(), keys.end(), own) != keys.end()) continue;
    keys.push_back(own);
    orders.push_back(std::move(order));
  } while (std::next_permutation(turn.begin(), turn.end()));
  return orders;
}

}  // namespace t3d
