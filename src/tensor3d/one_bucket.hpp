// One bucket of parameters at a time (tensor3d/parameters.hpp): for whoever looks at many ranks, of
// whom the tables of all buckets would not fit into memory.
#pragma once
#include "tensor3d/parameters.hpp"

namespace t3d {

/// parameter_buckets()[number] alone.
[[nodiscard]] BucketTable parameter_bucket(const ModelShape& shape, const MeshShape& mesh,
                                           const Coord& coord, std::size_t number);
/// The first bucket whose elements lie where those of `number` do: all blocks are cut alike.
[[nodiscard]] std::size_t bucket_cut_like(const ModelConfig& model, std::size_t number);

/// BucketTable::shard_boxes() of any member of the bucket's group.
[[nodiscard]] std::vector<PlacedBox> shard_boxes_of(const BucketTable& bucket,
                                                    const ParamEntry& entry, index_t member);

}  // namespace t3d
