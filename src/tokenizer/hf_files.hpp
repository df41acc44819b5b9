// What transformers wants to know of a tokenizer beside its tokenizer.json.
#pragma once
#include <nlohmann/json.hpp>

#include "tokenizer/tokenizer.hpp"

namespace t3d {

/// The keys of tokenizer_config.json. name_of(id): the special token's text, or nothing where the
/// tokenizer has no such id: then it is left out.
template <class NameOf>
[[nodiscard]] nlohmann::ordered_json tokenizer_config(const SpecialIds& ids,
                                                      const NameOf& name_of) {
  // Without model_input_names there are token_type_ids, which no model of ours takes.
  nlohmann::ordered_json config{{"tokenizer_class", "PreTrainedTokenizerFast"},
                                {"model_input_names", {"input_ids", "attention_mask"}},
                                {"clean_up_tokenization_spaces", false}};
  const auto name = [&](const char* key, std::int32_t id) {
    if (id < 0) return;
    if (const std::string text = name_of(id); !text.empty()) config[key] = text;
  };
  if (!ids.unnamed.bos) name("bos_token", ids.bos);
  if (!ids.unnamed.eos) name("eos_token", ids.eos);
  if (!ids.unnamed.pad) name("pad_token", ids.pad);
  name("unk_token", ids.unknown);
  if (ids.adds_bos) config["add_bos_token"] = *ids.adds_bos;
  return config;
}

}  // namespace t3d
