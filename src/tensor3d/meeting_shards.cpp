#include "tensor3d/meeting_shards.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "tensor3d/one_bucket.hpp"

namespace t3d {
namespace {

bool meets(const PlacedBox& box, const std::vector<PlacedBox>& others) {
  return std::any_of(others.begin(), others.end(), [&](const PlacedBox& other) {
    return !intersect(box.box, other.box).empty();
  });
}

/// Members of the bucket's group that may hold some of `own`: shards are flat ranges, so those
/// between the first and the last element of each common box.
std::vector<bool> candidates(const BucketTable& table, const ShardBoxes& own) {
  std::vector<bool> members(static_cast<std::size_t>(table.shards.parts()), false);
  for (std::size_t number = 0; number < own.size(); ++number) {
    if (own[number].empty()) continue;
    index_t at = table.entries[number].offset;
    for (const Box& segment : table.entries[number].segments) {
      for (const PlacedBox& held : own[number]) {
        const Box common = intersect(segment, held.box);
        if (common.empty()) continue;
        const auto flat = [&](index_t row, index_t col) {
          return at + (row - segment.row0) * segment.cols + col - segment.col0;
        };
        const index_t last = table.shards.part_of(flat(common.row1() - 1, common.col1() - 1));
        for (index_t member = table.shards.part_of(flat(common.row0, common.col0)); member <= last;
             ++member)
          members[static_cast<std::size_t>(member)] = true;
      }
      at += segment.count();
    }
  }
  return members;
}

/// What `member` holds of what the boxes ask for; empty where it is nothing.
ShardBoxes common_boxes(const BucketTable& table, index_t member, const ShardBoxes& own) {
  ShardBoxes boxes;
  for (std::size_t number = 0; number < own.size(); ++number) {
    if (own[number].empty()) continue;
    for (const PlacedBox& piece : shard_boxes_of(table, table.entries[number], member)) {
      if (!meets(piece, own[number])) continue;
      boxes.resize(own.size());
      boxes[number].push_back(piece);
    }
  }
  return boxes;
}

/// Of the member of a group of which the rank at `block` is the first.
Coord coord_of_member(Group group, const Cuboid& cuboid, Coord block, index_t member) {
  const auto& [p, q, r] = cuboid;
  switch (group) {
    case Group::i: block.i = member; return block;
    case Group::ij: block.i = member / q, block.j = member % q; return block;
    case Group::ik: block.i = member / r, block.k = member % r; return block;
    case Group::cuboid: return {0, member / r / q, member / r % q, member % r};
    default: break;
  }
  T3D_CHECK(false, "a bucket gathered over {}", name_of(group));
}

}  // namespace

ShardBoxes boxes_of(const BucketTable& bucket) {
  ShardBoxes boxes;
  for (const ParamEntry& entry : bucket.entries) boxes.push_back(bucket.shard_boxes(entry));
  return boxes;
}

std::vector<MeetingShard> meeting_shards(const ModelConfig& model, const ReplicaPlan& cut,
                                         std::size_t number, const ShardBoxes& own) {
  std::vector<MeetingShard> found;
  if (std::all_of(own.begin(), own.end(), [](const auto& boxes) { return boxes.empty(); }))
    return found;
  const auto& [p, q, r] = cut.cuboid;
  const MeshShape mesh(1, p, q, r);
  const ModelShape shape(model, cut);
  const Group group = parameter_bucket(shape, mesh, {}, number).group;
  const bool over_j = group == Group::ij || group == Group::cuboid;
  const bool over_k = group == Group::ik || group == Group::cuboid;
  for (index_t j = 0; j < (over_j ? 1 : q); ++j)
    for (index_t k = 0; k < (over_k ? 1 : r); ++k) {
      const Coord block{0, 0, j, k};
      const BucketTable table = parameter_bucket(shape, mesh, block, number);
      const std::vector<bool> members = candidates(table, own);
      for (std::size_t member = 0; member < members.size(); ++member) {
        if (!members[member]) continue;
        ShardBoxes boxes = common_boxes(table, static_cast<index_t>(member), own);
        if (boxes.empty()) continue;
        found.push_back({coord_of_member(group, cut.cuboid, block, static_cast<index_t>(member)),
                         std::move(boxes)});
      }
    }
  return found;
}

CutClasses cut_classes(const Plan& plan) {
  CutClasses classes;
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    const auto alike = std::find_if(
        classes.replicas.begin(), classes.replicas.end(), [&](const std::vector<index_t>& members) {
          return plan.replica(members.front()).cut_like(plan.replica(d));
        });
    classes.of.push_back(static_cast<std::size_t>(alike - classes.replicas.begin()));
    if (alike == classes.replicas.end())
      classes.replicas.push_back({d});
    else
      alike->push_back(d);
  }
  return classes;
}

index_t bytes_of(const ShardBoxes& boxes) {
  std::size_t bytes = boxes.capacity() * sizeof(boxes.front());
  for (const std::vector<PlacedBox>& entry : boxes) bytes += entry.capacity() * sizeof(PlacedBox);
  return static_cast<index_t>(bytes);
}

}  // namespace t3d
