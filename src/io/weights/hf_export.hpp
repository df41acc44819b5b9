// A model as files of safetensors under Hugging Face's names.
#pragma once
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/options.hpp"
#include "io/weights/weight_source.hpp"

namespace t3d {

/// Files above this are cut into several, with an index.
inline constexpr index_t kShardBytes = 5'000'000'000;

struct HfFiles {
  std::vector<std::string> names;  // written, in `folder`
  index_t bytes = 0;               // of tensors
};
/// Writes model.safetensors, or model-00001-of-0000N.safetensors and their index, strip by strip.
/// Error(config) when no family has this model (hf_layout.hpp), Error(io).
HfFiles write_hf_weights(const WeightSource& source, const ModelConfig& model, DType dtype,
                         const std::string& folder, index_t shard_bytes = kShardBytes);

}  // namespace t3d
