#include "io/weights/peft.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace t3d {
namespace {

/// A Llama's module of a word of kLoraTargets.
std::string module_of(const std::string& target) {
  if (target == "q" || target == "k" || target == "v" || target == "o")
    return "self_attn." + target + "_proj";
  return "mlp." + target + "_proj";
}

}  // namespace

std::vector<HfTensor> peft_tensors(const ModelConfig& model,
                                   const std::vector<AdaptedPart>& parts) {
  if (parts.empty())
    throw_error(ExitCode::config, "the checkpoint has no adapters: lora.rank is 0");
  if (hf_family(model) == HfFamily::gpt2)
    throw_error(ExitCode::config,
                "PEFT has one adapter for q, k and v of a GPT-2 together, this run one for each; "
                "--format hf writes the whole model with the adapters added");
  constexpr std::string_view kBlocks = "blocks.";
  std::vector<HfTensor> all;
  for (const AdaptedPart& part : parts) {
    const std::string number =
        part.weight.substr(kBlocks.size(), part.weight.find('.', kBlocks.size()) - kBlocks.size());
    const std::string name =
        fmt::format("base_model.model.model.layers.{}.{}", number, module_of(part.target));
    all.push_back(
        {name + ".lora_A.weight", false, false, part.a, {part.low0, 0, part.rank, part.in}});
    all.push_back(
        {name + ".lora_B.weight", false, false, part.b, {part.b_row0, 0, part.rows, part.rank}});
  }
  return all;
}

std::string peft_config_text(const ModelConfig& model, const std::string& base) {
  const LoraOptions& lora = model.lora;
  nlohmann::ordered_json config;
  config["peft_type"] = "LORA";
  config["task_type"] = "CAUSAL_LM";
  if (base.empty())
    config["base_model_name_or_path"] = nullptr;
  else
    config["base_model_name_or_path"] = base;
  config["r"] = lora.rank;
  config["lora_alpha"] = lora.alpha > 0 ? lora.alpha : static_cast<double>(lora.rank);
  config["lora_dropout"] = 0.0;
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["inference_mode"] = true;
  config["init_lora_weights"] = true;
  for (const std::string& target : lora.targets)
    config["target_modules"].push_back(target + "_proj");
  return config.dump(2) + "\n";
}

}  // namespace t3d
