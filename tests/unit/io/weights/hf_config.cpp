// config.json of Hugging Face's models: which of them are ours, and what is written for one of
// ours.
#include "io/weights/hf_config.hpp"

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/python_json.hpp"
#include "io/weights/hf_layout.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

nlohmann::json mistral() {
  return {{"model_type", "mistral"},  {"hidden_size", 32},
          {"num_hidden_layers", 1},   {"num_attention_heads", 4},
          {"num_key_value_heads", 2}, {"intermediate_size", 48},
          {"vocab_size", 100},        {"max_position_embeddings", 128},
          {"sliding_window", 24}};
}

ModelConfig parsed(const nlohmann::json& config) { return parse_hf_config(config.dump(), "f"); }

nlohmann::json written(const ModelConfig& model, const SpecialIds& tokens = {}) {
  return nlohmann::json::parse(hf_config_text(model, "float32", tokens));
}

}  // namespace

TEST_CASE("a sliding window allows contexts up to its width") {
  CHECK(parsed(mistral()).context == 24);
  CHECK(parse_hf_window(mistral().dump(), "f") == 24);
  nlohmann::json config = mistral();
  config["layer_types"] = {"sliding_attention"};
  CHECK(parsed(config).context == 24);
  config["layer_types"] = {"chunked_attention"};
  CHECK_THROWS_AS(parsed(config), Error);
  config = mistral();
  config["sliding_window"] = nullptr;
  CHECK(parsed(config).context == 128);
  CHECK(parse_hf_window(config.dump(), "f") == 0);
  config["sliding_window"] = 4096;
  CHECK(parsed(config).context == 128);
}

TEST_CASE("dropout is no part of a model's identity") {
  ModelConfig model = parsed(mistral());
  CHECK(hf_obstacles(model).empty());
  model.dropout = 0.1;
  CHECK(hf_obstacles(model).empty());
  CHECK(hf_tensors(model).size() == 12);
}

TEST_CASE("a hidden size that is no multiple of the heads goes out as Mistral") {
  ModelConfig model = parsed(mistral());
  CHECK(written(model)["model_type"] == "llama");
  model.hidden = 30;
  model.head_columns = 8;
  const nlohmann::json config = written(model);
  CHECK(config["model_type"] == "mistral");
  CHECK(config["architectures"] == nlohmann::json{"MistralForCausalLM"});
  CHECK(config["head_dim"] == 8);
  CHECK((config.contains("sliding_window") && config["sliding_window"].is_null()));
  CHECK(!config.contains("attention_bias"));
  CHECK(parsed(config).head_size() == 8);
  CHECK(parsed(config).context == 24);
  model.bias = true;  // only Llama has these
  CHECK(written(model)["model_type"] == "llama");
}

TEST_CASE("one end of a text is a number, several are a list") {
  const ModelConfig model = parsed(mistral());
  CHECK(written(model)["eos_token_id"].is_null());
  CHECK(written(model, {1, 2, -1, -1})["eos_token_id"] == 2);
  const SpecialIds two{1, 2, 5, -1, {2, 7}};
  CHECK(written(model, two)["eos_token_id"] == nlohmann::json{2, 7});
  CHECK(nlohmann::json::parse(hf_generation_text(two)) ==
        nlohmann::json{{"bos_token_id", 1}, {"eos_token_id", {2, 7}}, {"pad_token_id", 5}});
  CHECK(nlohmann::json::parse(hf_generation_text({})) == nlohmann::json::object());
}

TEST_CASE("a wrong value is wrong input, and what is no JSON cannot be read") {
  const auto fault_of = [](const std::string& text) -> Error {
    try {
      (void)parse_hf_config(text, "f");
    } catch (const Error& error) {
      return error;
    }
    return {ExitCode::done, "taken"};
  };
  const auto changed = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json config = mistral();
    config[key] = value;
    return fault_of(config.dump());
  };
  CHECK(changed("hidden_size", "wide").code() == ExitCode::config);
  CHECK(std::string(changed("num_attention_heads", 0).what()) ==
        "f: num_attention_heads is 0, not a number from 1 to 1,000,000");
  CHECK(changed("vocab_size", nullptr).code() == ExitCode::config);
  CHECK(changed("rms_norm_eps", "small").code() == ExitCode::config);
  CHECK(fault_of("{\"model_type\": \"mis").code() == ExitCode::io);
  // As Python writes numbers that JSON does not have, in a key that nobody reads.
  std::string text = mistral().dump();
  text.insert(1, "\"time_step_limit\": [0.0, Infinity, NaN, -Infinity], \"of\": \"NaN \\\"NaN\",");
  CHECK_NOTHROW(parse_hf_config(text, "f"));
  CHECK(json_of_python("[NaN, \"Infinity \\\" NaN\"]") == "[null, \"Infinity \\\" NaN\"]");
}
