// The tensors of a model whole, as a checkpoint has them.
#pragma once
#include <string>
#include <vector>

#include "core/options.hpp"

namespace t3d {

struct OwnTensor {
  std::string name;
  index_t rows = 0, cols = 0;  // vectors: [1, n]
  bool vector = false;
};

/// In the order of the layers' buckets. Pure arithmetic.
[[nodiscard]] std::vector<OwnTensor> own_tensors(const ModelConfig& model);

/// A table of tokens: one row for each.
[[nodiscard]] bool is_vocabulary(const std::string& name);

}  // namespace t3d
