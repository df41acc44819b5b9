#include "forecast/node_members.hpp"

#include <algorithm>
#include <cmath>

namespace t3d {
namespace {

std::size_t index_of(Axis axis) { return static_cast<std::size_t>(axis); }

}  // namespace

// Multiples of the golden ratio: no two are close, and no stride of a mesh is theirs.
std::vector<index_t> looked_at(index_t places, index_t looks) {
  std::vector<index_t> ranks;
  for (index_t look = 0; look < std::min(places, looks); ++look) {
    const double part = static_cast<double>(look) * 0.6180339887498949;
    const double fraction = part - std::floor(part);
    ranks.push_back(places <= looks ? look
                                    : static_cast<index_t>(fraction * static_cast<double>(places)));
  }
  return ranks;
}

NodeMembers::NodeMembers(const JobNodes& nodes)
    : ranks_(nodes.ranks()), ranks_per_node_(1), looks_(looked_at(nodes.ranks())) {
  for (const JobPart& part : nodes.parts())
    ranks_per_node_ =
        std::max(ranks_per_node_, nodes.cluster().classes[part.node_class].ranks_per_node);
}

OnNode NodeMembers::fewest(const AxisOrder& order, const AxisExtents& extents) {
  const Strides strides = strides_of(order, extents);
  OnNode members{1, 1, 1, 1};
  for (const Axis axis : order)
    members[index_of(axis)] = fewest(strides[index_of(axis)], extents[index_of(axis)]);
  return members;
}

OnNode NodeMembers::fewest_at_best(const AxisExtents& extents) {
  OnNode members{};
  for (std::size_t axis = 0; axis < members.size(); ++axis)
    members[axis] = fewest_at_best(extents[axis]);
  return members;
}

OnNode NodeMembers::most(const AxisOrder& order, const AxisExtents& extents) const {
  const Strides strides = strides_of(order, extents);
  OnNode members{1, 1, 1, 1};
  for (const Axis axis : order) {
    const index_t stride = strides[index_of(axis)];
    members[index_of(axis)] =
        std::min((ranks_per_node_ + stride - 1) / stride, extents[index_of(axis)]);
  }
  return members;
}

index_t NodeMembers::fewest(index_t stride, index_t members) {
  if (stride >= ranks_per_node_ || members == 1) return 1;
  const auto [entry, is_new] = by_stride_.try_emplace({stride, members}, members);
  if (!is_new) return entry->second;
  for (const index_t rank : looks_) {
    const index_t own = rank / stride % members, place = rank % ranks_per_node_;
    const index_t before = std::min(own, place / stride),
                  behind = std::min(members - 1 - own, (ranks_per_node_ - 1 - place) / stride);
    entry->second = std::min(entry->second, before + 1 + behind);
  }
  return entry->second;
}

index_t NodeMembers::fewest_at_best(index_t members) {
  const auto [entry, is_new] = at_best_.try_emplace(members, 1);
  if (!is_new) return entry->second;
  for (index_t stride = 1; stride < ranks_per_node_; ++stride)
    if (ranks_ % (stride * members) == 0)
      entry->second = std::max(entry->second, fewest(stride, members));
  return entry->second;
}

}  // namespace t3d
