// Adapters alone, in the form of Hugging Face's PEFT: adapter_config.json beside
// adapter_model.safetensors. Names and layouts: peft/utils/save_and_load.py, LoraConfig.
#pragma once
#include <string>
#include <vector>

#include "core/whole_tensor.hpp"
#include "io/weights/hf_layout.hpp"

namespace t3d {

/// Error(config) where the family keeps adapted parts in one matrix (GPT-2): there PEFT's adapters
/// are other ones.
[[nodiscard]] std::vector<HfTensor> peft_tensors(const ModelConfig& model,
                                                 const std::vector<AdaptedPart>& parts);
/// `base`: folder or name of the model that the adapters belong to; empty = not known.
[[nodiscard]] std::string peft_config_text(const ModelConfig& model, const std::string& base);

}  // namespace t3d
