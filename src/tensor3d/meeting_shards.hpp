// Whose shards of a bucket hold some of the same elements as a given one? Asked of one cuboid, for
// one bucket: tables are made for one block of gathered elements at a time, and kept are only the
// boxes that meet. So the memory follows the ranks that meet, not all there are. Pure arithmetic.
#pragma once
#include <vector>

#include "tensor3d/parameters.hpp"

namespace t3d {

/// Boxes of a shard by entry of its bucket; offsets are within the shard.
using ShardBoxes = std::vector<std::vector<PlacedBox>>;

/// Of all entries.
[[nodiscard]] ShardBoxes boxes_of(const BucketTable& bucket);

struct MeetingShard {
  Coord coord;       // i, j, k in its cuboid; d = 0
  ShardBoxes boxes;  // those that meet the asked ones, in the order of the shard
};

/// The ranks of a cuboid that is cut as `cut` says, whose shards of bucket `number` meet `own`:
/// each once, in no order that means something.
[[nodiscard]] std::vector<MeetingShard> meeting_shards(const ModelConfig& model,
                                                       const ReplicaPlan& cut, std::size_t number,
                                                       const ShardBoxes& own);

/// How the replicas of a plan are cut: replicas that are cut alike have one class.
struct CutClasses {
  std::vector<std::size_t> of;                 // class by replica
  std::vector<std::vector<index_t>> replicas;  // by class, rising
};
[[nodiscard]] CutClasses cut_classes(const Plan& plan);

/// Host memory that such boxes take, in bytes.
[[nodiscard]] index_t bytes_of(const ShardBoxes& boxes);

}  // namespace t3d
