// Groups of parameters: what Adasum, LAMB's trust ratio and Muon treat as one vector. A group is
// a logical tensor (or a block, or the whole model), wherever its elements lie: on each rank it is
// some segments of the shards, and a sum over all ranks of a cuboid meets every element once.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "ops/aggregate_args.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class ParamGroups {
 public:
  /// The same numbers on every rank. Blocks are what precedes the second dot of "blocks.7.norm1"
  /// and of the like; other parameters are groups of their own.
  ParamGroups(const std::vector<ParamBucket*>& buckets, GroupBy by);

  [[nodiscard]] index_t count() const { return static_cast<index_t>(names_.size()); }
  [[nodiscard]] const std::string& name(index_t group) const {
    return names_[static_cast<std::size_t>(group)];
  }
  /// Group of an entry of a bucket, by their numbers.
  [[nodiscard]] index_t of(std::size_t bucket, std::size_t entry) const {
    return groups_[bucket][entry];
  }
  /// Numbers of the buckets that are not frozen.
  [[nodiscard]] const std::vector<std::size_t>& trained() const { return trained_; }
  /// This rank's shard of a bucket, cut by entry; empty segments are left out. None of a frozen
  /// one.
  [[nodiscard]] const std::vector<Segment>& segments(std::size_t bucket) const {
    return segments_[bucket];
  }

 private:
  index_t number_of(std::string_view name);

  std::vector<std::string> names_;
  std::vector<std::vector<index_t>> groups_;
  std::vector<std::vector<Segment>> segments_;
  std::vector<std::size_t> trained_;
};

/// The parts of `segments` that lie in columns [begin, end), counted from `begin`.
[[nodiscard]] std::vector<Segment> clip(const std::vector<Segment>& segments, index_t begin,
                                        index_t end);

}  // namespace t3d
