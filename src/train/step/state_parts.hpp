// State as a checkpoint sees it: this rank's pieces of every global tensor.
#pragma once
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.hpp"
#include "train/formation.hpp"
#include "train/step/host_image.hpp"

namespace t3d {

/// The master weights of a model, in host memory. `image` must outlive them; it copies on demand.
[[nodiscard]] std::vector<TensorPart> weight_parts(Transformer& model, HostImage& image);

/// Weights, optimizer state, and what aggregation keeps, of a formation that is not idle.
[[nodiscard]] std::vector<TensorPart> state_parts(Formation& formation, HostImage& image);

/// Name of the first part that has an element which is not finite; "" where there is none.
[[nodiscard]] std::string first_not_finite(const std::vector<TensorPart>& parts);

}  // namespace t3d
