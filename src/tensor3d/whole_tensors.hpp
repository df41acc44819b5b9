// The tensors of a model whole, as files have them.
#pragma once
#include <vector>

#include "core/options.hpp"
#include "core/whole_tensor.hpp"

namespace t3d {

/// In the order of the layers' buckets. Pure arithmetic.
[[nodiscard]] std::vector<WholeTensor> whole_tensors(const ModelConfig& model);

/// What the adapters of a model add to its matrices, in the order of the layers.
[[nodiscard]] std::vector<AdaptedPart> adapted_parts(const ModelConfig& model);

}  // namespace t3d
