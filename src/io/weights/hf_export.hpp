// A model as files of safetensors under Hugging Face's names.
#pragma once
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/options.hpp"
#include "io/weights/hf_layout.hpp"
#include "io/weights/weight_source.hpp"

namespace t3d {

/// Files above this are cut into several, with an index.
inline constexpr index_t kShardBytes = 5'000'000'000;

struct HfFiles {
  std::vector<std::string> names;  // written, in `folder`
  index_t bytes = 0;               // of tensors
};
/// Writes `tensors` (hf_layout.hpp) as STEM.safetensors, or STEM-00001-of-0000N.safetensors and
/// their index, strip by strip. Error(io).
HfFiles write_hf_weights(const WeightSource& source, const std::vector<HfTensor>& tensors,
                         DType dtype, const std::string& folder, const std::string& stem = "model",
                         index_t shard_bytes = kShardBytes);

}  // namespace t3d
