// State as a checkpoint sees it: this rank's pieces of every global tensor.
#pragma once
#include <vector>

#include "io/checkpoint/checkpoint.hpp"
#include "train/formation.hpp"
#include "train/step/host_image.hpp"

namespace t3d {

/// The master weights of a model, in host memory. `image` must outlive them; it copies on demand.
[[nodiscard]] std::vector<TensorPart> weight_parts(Transformer& model, HostImage& image);

/// Weights, optimizer state, and what aggregation keeps, of a formation that is not idle.
[[nodiscard]] std::vector<TensorPart> state_parts(Formation& formation, HostImage& image);

}  // namespace t3d
