// State as a checkpoint sees it: this rank's pieces of every global tensor.
#pragma once
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.hpp"
#include "tensor3d/param_bucket.hpp"
#include "train/step/host_image.hpp"

namespace t3d {

/// Appends, for every parameter, its pieces of `shards[b]` (a share-sized buffer per bucket) under
/// the name prefix + parameter name.
void append_parts(const std::vector<ParamBucket*>& buckets, const std::vector<TensorView>& shards,
                  const std::string& prefix, std::vector<TensorPart>& parts);

/// The master weights, in host memory. `image` must outlive them; it copies when told to.
[[nodiscard]] std::vector<TensorPart> weight_parts(const std::vector<ParamBucket*>& buckets,
                                                   HostImage& image);

}  // namespace t3d
