#include "io/weights/hf_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/commas.hpp"
#include "core/error.hpp"
#include "core/python_json.hpp"
#include "core/utf8.hpp"
#include "io/weights/hf_layout.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;

constexpr index_t kTokens = 100'000'000, kLayers = 100'000;

/// Reads the keys of one object; what is null counts as not there.
class ConfigReader {
 public:
  ConfigReader(const Json& json, const std::string& path) : json_(json), path_(path) {}

  [[nodiscard]] const Json* find(const char* key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  /// Also with null as its value.
  [[nodiscard]] bool has(const char* key) const { return json_.contains(key); }
  [[nodiscard]] bool holds_objects() const {
    return std::any_of(json_.begin(), json_.end(),
                       [](const Json& value) { return value.is_object(); });
  }
  /// Of layers, widths and tokens: products of three still fit into an index.
  [[nodiscard]] index_t count(const char* key, std::optional<index_t> otherwise = {},
                              index_t most = 1'000'000, index_t least = 1) const {
    const Json* value = find(key);
    if (value == nullptr && otherwise) return *otherwise;
    if (value == nullptr) throw_error(ExitCode::config, "{} has no {}", path_, key);
    if (!value->is_number_integer() || value->get<std::int64_t>() < least ||
        value->get<std::int64_t>() > most)
      refuse(key,
             fmt::format("a number from {} to {}", least, with_commas(static_cast<double>(most))));
    return value->get<index_t>();
  }
  [[nodiscard]] double number(const char* key, double otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number() || !std::isfinite(value->get<double>())) refuse(key, "a number");
    return value->get<double>();
  }
  [[nodiscard]] bool flag(const char* key, bool otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(key, "true or false");
    return value->get<bool>();
  }
  [[nodiscard]] std::string word(const char* key, const std::string& otherwise) const {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_string()) refuse(key, "a word");
    return value->get<std::string>();
  }
  /// One of `words`.
  void one_of(const char* key, const std::string& otherwise,
              const std::vector<std::string>& words) const {
    const std::string value = word(key, otherwise);
    for (const std::string& allowed : words)
      if (value == allowed) return;
    throw_error(ExitCode::config, "{}: {} = \"{}\" is not computed here, only {}", path_, key,
                printable(value, 60), fmt::join(words, ", "));
  }
  void must_be(const char* key, bool wanted) const {
    if (flag(key, wanted) != wanted)
      throw_error(ExitCode::config, "{}: {} = {} is not computed here", path_, key, !wanted);
  }
  [[nodiscard]] std::optional<ConfigReader> object(const char* key) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_object()) refuse(key, "an object");
    return ConfigReader(*value, path_);
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  [[noreturn]] void refuse(const char* key, const std::string& what) const {
    throw_error(ExitCode::config, "{}: {} is {}, not {}", path_, key,
                printable(json_[key].dump(), 40), what);
  }
  const Json& json_;
  const std::string& path_;
};

ModelConfig gpt2_model(const ConfigReader& in) {
  in.one_of("activation_function", "gelu_new", {"gelu_new", "gelu_pytorch_tanh"});
  in.must_be("scale_attn_weights", true);
  in.must_be("scale_attn_by_inverse_layer_idx", false);
  in.must_be("add_cross_attention", false);
  ModelConfig model;
  model.layers = in.count("n_layer", {}, kLayers);
  model.hidden = in.count("n_embd");
  model.heads = model.kv_heads = in.count("n_head");
  model.ffn = in.count("n_inner", 4 * model.hidden);
  model.vocab = in.count("vocab_size", {}, kTokens);
  model.context = in.count("n_positions", {}, kTokens);
  model.norm_eps = in.number("layer_norm_epsilon", 1e-5);
  model.tied_embeddings = in.flag("tie_word_embeddings", true);
  model.init_std = in.number("initializer_range", 0.02);
  return model;
}

/// Where transformers looks: rope_scaling before rope_parameters.
std::optional<ConfigReader> scaling_of(const ConfigReader& config) {
  const bool older = config.find("rope_scaling") != nullptr;
  const std::optional<ConfigReader> scaling =
      config.object(older ? "rope_scaling" : "rope_parameters");
  if (scaling && scaling->holds_objects())
    throw_error(ExitCode::config, "{}: rotations that differ from layer to layer are not computed",
                config.path());
  return scaling;
}

void refuse_partial(const ConfigReader& in) {
  if (in.number("partial_rotary_factor", 1) != 1)
    throw_error(ExitCode::config, "{}: partial_rotary_factor is not computed here", in.path());
}

RopeOptions rope_of(const ConfigReader& config, index_t positions) {
  RopeOptions rope;
  refuse_partial(config);
  const std::optional<ConfigReader> parameters = config.object("rope_parameters");
  const std::optional<ConfigReader> scaling = scaling_of(config);
  rope.base = config.number("rope_theta", 10000);
  if (parameters) rope.base = parameters->number("rope_theta", rope.base);
  if (!scaling) return rope;
  rope.base = scaling->number("rope_theta", rope.base);
  refuse_partial(*scaling);
  const char* key = scaling->find("rope_type") != nullptr ? "rope_type" : "type";
  scaling->one_of(key, "default", {"default", "linear", "llama3", "yarn"});
  const std::string kind = scaling->word(key, "default");
  if (kind == "default") return rope;
  rope.scaling = *choice_of<RopeScaling>(kind);
  if (scaling->find("factor") == nullptr)
    throw_error(ExitCode::config, "{}: {} of rope_scaling needs its factor", config.path(), kind);
  rope.factor = scaling->number("factor", 1);
  if (rope.scaling == RopeScaling::linear) return rope;
  const index_t original = config.count("original_max_position_embeddings", positions, kTokens, 0);
  rope.original_context = scaling->count("original_max_position_embeddings", original, kTokens, 0);
  rope.low_freq_factor = scaling->number("low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = scaling->number("high_freq_factor", rope.high_freq_factor);
  rope.beta_fast = scaling->number("beta_fast", rope.beta_fast);
  rope.beta_slow = scaling->number("beta_slow", rope.beta_slow);
  rope.attention_factor = scaling->number("attention_factor", 0);
  for (const char* unknown : {"mscale", "mscale_all_dim"})
    if (scaling->find(unknown) != nullptr)
      throw_error(ExitCode::config, "{}: {} of rope_scaling is not computed here", config.path(),
                  unknown);
  if (rope.scaling == RopeScaling::yarn) scaling->must_be("truncate", true);
  return rope;
}

/// Whole attention in every layer is the same up to the window's width; 0 = there is none. Where a
/// file says nothing of the width, the family's default holds.
index_t window_of(const ConfigReader& in, const std::string& type) {
  constexpr index_t kDefaultWindow = 4096;
  const bool by_switch = type == "qwen2" || type == "qwen3";
  const bool on = by_switch ? in.flag("use_sliding_window", false)
                            : in.find("sliding_window") != nullptr ||
                                  (type == "mistral" && !in.has("sliding_window"));
  return on ? in.count("sliding_window", kDefaultWindow, kTokens, 0) : 0;
}

void refuse_other_layers(const ConfigReader& in) {
  if (const Json* kinds = in.find("layer_types"); kinds != nullptr && kinds->is_array())
    for (const Json& kind : *kinds)
      if (kind != "full_attention" && kind != "sliding_attention")
        throw_error(ExitCode::config,
                    "{}: layer_types other than full_attention and sliding_attention are not "
                    "computed",
                    in.path());
}

/// Of num_key_value_heads where the file does not have the key; null means: as many as heads.
index_t default_kv_heads(const ConfigReader& in, const std::string& type, index_t heads) {
  if (in.has("num_key_value_heads") || type == "llama") return heads;
  return type == "mistral" ? 8 : 32;
}

ModelConfig llama_model(const ConfigReader& in, const std::string& type) {
  in.one_of("hidden_act", "silu", {"silu", "swish"});
  ModelConfig model;
  model.norm = NormKind::rms;
  model.activation = Activation::swiglu;
  model.position = Position::rope;
  model.layers = in.count("num_hidden_layers", {}, kLayers);
  model.hidden = in.count("hidden_size");
  model.heads = in.count("num_attention_heads");
  model.kv_heads = in.count("num_key_value_heads", default_kv_heads(in, type, model.heads));
  model.head_columns = in.count("head_dim", type == "qwen3" ? 128 : 0);
  model.ffn = in.count("intermediate_size");
  model.vocab = in.count("vocab_size", {}, kTokens);
  model.context = in.count("max_position_embeddings", {}, kTokens);
  model.norm_eps = in.number("rms_norm_eps", 1e-6);
  model.tied_embeddings = in.flag("tie_word_embeddings", false);
  model.init_std = in.number("initializer_range", 0.02);
  model.qk_norm = type == "qwen3";
  model.bias = in.flag("mlp_bias", false);
  const bool attention = in.flag("attention_bias", false);
  model.attention_bias = type == "qwen2" ? AttentionBias::qkv
                         : attention     ? AttentionBias::all
                                         : AttentionBias::none;
  if (model.bias == attention && type != "qwen2") model.attention_bias = AttentionBias::as_bias;
  model.rope = rope_of(in, model.context);
  refuse_other_layers(in);
  if (const index_t window = window_of(in, type); window > 0)
    model.context = std::min(model.context, window);
  return model;
}

const char* architecture_of(HfFamily family) {
  switch (family) {
    case HfFamily::gpt2: return "GPT2LMHeadModel";
    case HfFamily::qwen2: return "Qwen2ForCausalLM";
    case HfFamily::qwen3: return "Qwen3ForCausalLM";
    case HfFamily::mistral: return "MistralForCausalLM";
    case HfFamily::llama: break;
  }
  return "LlamaForCausalLM";
}

const char* type_of(HfFamily family) {
  switch (family) {
    case HfFamily::gpt2: return "gpt2";
    case HfFamily::qwen2: return "qwen2";
    case HfFamily::qwen3: return "qwen3";
    case HfFamily::mistral: return "mistral";
    case HfFamily::llama: break;
  }
  return "llama";
}

void write_gpt2(const ModelConfig& m, nlohmann::ordered_json& out) {
  out["n_layer"] = m.layers;
  out["n_embd"] = m.hidden;
  out["n_head"] = m.heads;
  out["n_inner"] = m.ffn;
  out["n_positions"] = m.context;
  out["n_ctx"] = m.context;
  out["activation_function"] = "gelu_new";
  out["layer_norm_epsilon"] = m.norm_eps;
  out["resid_pdrop"] = m.dropout;
  out["embd_pdrop"] = m.dropout;
  out["attn_pdrop"] = 0.0;
}

void write_rope(const ModelConfig& m, nlohmann::ordered_json& out) {
  const RopeOptions& rope = m.rope;
  out["rope_theta"] = rope.base;
  if (rope.scaling == RopeScaling::none) return;
  nlohmann::ordered_json scaling;
  scaling["rope_type"] = word_of(rope.scaling);
  scaling["factor"] = rope.factor;
  if (rope.scaling != RopeScaling::linear)
    scaling["original_max_position_embeddings"] = rope.original_context;
  if (rope.scaling == RopeScaling::llama3) {
    scaling["low_freq_factor"] = rope.low_freq_factor;
    scaling["high_freq_factor"] = rope.high_freq_factor;
  }
  if (rope.scaling == RopeScaling::yarn) {
    scaling["beta_fast"] = rope.beta_fast;
    scaling["beta_slow"] = rope.beta_slow;
    if (rope.attention_factor > 0) scaling["attention_factor"] = rope.attention_factor;
  }
  out["rope_scaling"] = scaling;
}

void write_llama(const ModelConfig& m, HfFamily family, nlohmann::ordered_json& out) {
  out["hidden_size"] = m.hidden;
  out["num_hidden_layers"] = m.layers;
  out["num_attention_heads"] = m.heads;
  out["num_key_value_heads"] = m.kv_heads;
  out["head_dim"] = m.head_size();
  out["intermediate_size"] = m.ffn;
  out["max_position_embeddings"] = std::max(m.context, m.max_context);
  out["hidden_act"] = "silu";
  out["rms_norm_eps"] = m.norm_eps;
  const bool qwen = family == HfFamily::qwen2 || family == HfFamily::qwen3;
  if (family == HfFamily::llama || family == HfFamily::qwen3) out["attention_bias"] = m.qkv_bias();
  if (family == HfFamily::llama) out["mlp_bias"] = m.mlp_bias();
  out["attention_dropout"] = 0.0;
  if (qwen) out["use_sliding_window"] = false;
  if (family == HfFamily::mistral) out["sliding_window"] = nullptr;
  write_rope(m, out);
}

Json parse_object(std::string_view text, const std::string& path) {
  Json json = Json::parse(json_of_python(text), nullptr, false);
  if (!json.is_object()) throw_error(ExitCode::io, "{} is not a JSON object", path);
  return json;
}

/// As transformers writes one end: a number; several: a list. Null where there is none.
nlohmann::ordered_json ends_json(const SpecialIds& tokens) {
  const std::vector<std::int32_t> ends = tokens.all_ends();
  if (ends.empty()) return nullptr;
  return ends.size() == 1 ? nlohmann::ordered_json(ends.front()) : nlohmann::ordered_json(ends);
}

}  // namespace

index_t parse_hf_window(std::string_view text, const std::string& path) {
  const Json json = parse_object(text, path);
  const ConfigReader in(json, path);
  return window_of(in, in.word("model_type", ""));
}

ModelConfig parse_hf_config(std::string_view text, const std::string& path) {
  const Json json = parse_object(text, path);
  const ConfigReader in(json, path);
  const std::string type = in.word("model_type", "");
  ModelConfig model;
  if (type == "gpt2")
    model = gpt2_model(in);
  else if (type == "llama" || type == "mistral" || type == "qwen2" || type == "qwen3")
    model = llama_model(in, type);
  else
    throw_error(ExitCode::config,
                "{}: model_type = \"{}\" is not known here; known are gpt2, llama, mistral, qwen2 "
                "and qwen3",
                path, printable(type, 60));
  return model;
}

std::string hf_config_text(const ModelConfig& model, std::string_view dtype,
                           const SpecialIds& tokens) {
  const HfFamily family = hf_family(model);
  nlohmann::ordered_json out;
  out["architectures"] = {architecture_of(family)};
  out["model_type"] = type_of(family);
  out["vocab_size"] = model.vocab;
  if (family == HfFamily::gpt2)
    write_gpt2(model, out);
  else
    write_llama(model, family, out);
  out["tie_word_embeddings"] = model.tied_embeddings;
  out["initializer_range"] = model.init_std;
  out["torch_dtype"] = dtype;
  out["bos_token_id"] =
      tokens.bos >= 0 ? nlohmann::ordered_json(tokens.bos) : nlohmann::ordered_json(nullptr);
  out["eos_token_id"] = ends_json(tokens);
  if (tokens.pad >= 0) out["pad_token_id"] = tokens.pad;
  return out.dump(2) + "\n";
}

std::string hf_generation_text(const SpecialIds& tokens) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  if (tokens.bos >= 0) out["bos_token_id"] = tokens.bos;
  if (!tokens.all_ends().empty()) out["eos_token_id"] = ends_json(tokens);
  if (tokens.pad >= 0) out["pad_token_id"] = tokens.pad;
  return out.dump(2) + "\n";
}

}  // namespace t3d
