#include "tokenizer/special_files.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/python_json.hpp"
#include "core/utf8.hpp"
#include "io/hdf5/token_file.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<std::int32_t>;

/// Empty where there is no such file.
Json read_object(const std::string& path) {
  if (!path_exists(path)) return Json::object();
  Json json = Json::parse(json_of_python(read_text_file(path)), nullptr, false);
  if (!json.is_object()) throw_error(ExitCode::io, "{} is not a JSON object", path);
  return json;
}

/// The ids that a model's file gives a key: a number, or a list of numbers.
class ModelFiles {
 public:
  ModelFiles(const std::string& folder, index_t vocab, std::vector<std::string>& notes)
      : folder_(folder), vocab_(vocab), notes_(notes) {
    for (const char* name : {"generation_config.json", "config.json"})
      files_.push_back(read_object(folder + "/" + name));
  }
  [[nodiscard]] Ids ids(const char* key) const {
    for (const Json& file : files_)
      if (const auto found = file.find(key); found != file.end() && !found->is_null())
        return known(found->is_array() ? *found : Json::array({*found}), key);
    return {};
  }
  [[nodiscard]] std::int32_t id(const char* key) const {
    const Ids all = ids(key);
    return all.empty() ? -1 : all.front();
  }

 private:
  [[nodiscard]] Ids known(const Json& list, const char* key) const {
    Ids ids;
    for (const Json& value : list) {
      const std::int64_t id = value.is_number_integer() ? value.get<std::int64_t>() : -1;
      if (id < 0 || id >= vocab_)
        notes_.push_back(fmt::format("{}: {} {} is no token of {}", folder_, key,
                                     printable(value.dump(), 40), vocab_));
      else if (std::ranges::find(ids, static_cast<std::int32_t>(id)) == ids.end())
        ids.push_back(static_cast<std::int32_t>(id));
    }
    return ids;
  }

  const std::string& folder_;
  index_t vocab_;
  std::vector<std::string>& notes_;
  std::vector<Json> files_;
};

/// Of tokenizer_config.json: the token's text, or an object that has it as "content".
std::int32_t token_named(const Json& config, const char* key, const Tokenizer& tokenizer) {
  const auto found = config.find(key);
  if (found == config.end()) return -1;
  const Json& value =
      found->is_object() && found->contains("content") ? (*found)["content"] : *found;
  return value.is_string() ? tokenizer.token_id(value.get<std::string>()) : -1;
}

void take_first(std::int32_t& id, std::int32_t other) {
  if (id < 0) id = other;
}

/// The file says that there is no such token: by null, or, where the class has none of its own, by
/// silence.
bool has_no_token(const Json& config, const std::string& key) {
  if (const auto found = config.find(key); found != config.end()) return found->is_null();
  const auto named = config.find("tokenizer_class");
  return named != config.end() &&
         (*named == "PreTrainedTokenizerFast" || *named == "TokenizersBackend");
}

/// A model may have ids that its tokenizer has not.
std::string shown(std::int32_t id, const Tokenizer& tokenizer) {
  if (id < 0 || id >= tokenizer.vocab()) return fmt::format("{}", id);
  const std::array ids{id};
  return fmt::format("{} ({})", id, printable(tokenizer.decode(ids, Specials::show), 40));
}

/// Error(io) where it is no whole number from `least` on: Json's own conversion makes another one.
std::int32_t id_of(const Json& value, std::int32_t least) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  const bool large = value.is_number_unsigned() && value.get<std::uint64_t>() > kMost;
  const std::int64_t id = value.is_number_integer() && !large ? value.get<std::int64_t>() : -2;
  if (id < least) throw_error(ExitCode::io, "{} is no id", printable(value.dump(), 40));
  return static_cast<std::int32_t>(id);
}

}  // namespace

SpecialIds special_ids_of_folder(const std::string& folder, const Tokenizer* tokenizer,
                                 index_t vocab, std::vector<std::string>& notes) {
  const ModelFiles model(folder, vocab, notes);
  const Json config = read_object(folder + "/tokenizer_config.json");
  SpecialIds ids;
  if (tokenizer != nullptr) {
    ids.bos = token_named(config, "bos_token", *tokenizer);
    ids.eos = token_named(config, "eos_token", *tokenizer);
    ids.pad = token_named(config, "pad_token", *tokenizer);
  }
  for (const auto& [name, unnamed] : named_flags(ids.unnamed))
    *unnamed = has_no_token(config, std::string(name) + "_token");
  ids.ends = model.ids("eos_token_id");
  take_first(ids.eos, ids.ends.empty() ? -1 : ids.ends.front());
  take_first(ids.bos, model.id("bos_token_id"));
  take_first(ids.pad, model.id("pad_token_id"));
  if (const auto adds = config.find("add_bos_token"); adds != config.end() && adds->is_boolean())
    ids.adds_bos = adds->get<bool>();
  if (tokenizer != nullptr) {
    const SpecialIds guess = tokenizer->special_ids();
    if (ids.eos >= 0 && guess.eos >= 0 && ids.eos != guess.eos)
      notes.push_back(
          fmt::format("the end of a text is {} by the files of {}; by its name it "
                      "would be {}",
                      shown(ids.eos, *tokenizer), folder, shown(guess.eos, *tokenizer)));
    take_first(ids.bos, guess.bos);
    take_first(ids.eos, guess.eos);
    take_first(ids.pad, guess.pad);
    ids.unknown = guess.unknown;
  }
  if (ids.ends == Ids{ids.eos}) ids.ends.clear();
  return ids;
}

SpecialIds load_special_ids(const std::string& path, const Tokenizer& tokenizer,
                            std::vector<std::string>& notes) {
  if (is_folder(path)) return special_ids_of_folder(path, &tokenizer, tokenizer.vocab(), notes);
  if (is_hdf5_file(path)) {
    const SpecialIds ids = TokenFileReader(path).info().special;
    return ids == SpecialIds() ? tokenizer.special_ids() : ids;
  }
  const std::filesystem::path file(path);
  const std::string name = file.filename().string(), folder = file.parent_path().string();
  const bool of_model =
      name == "tokenizer.json" || name == "tokenizer.model" || name == "tiktoken.model";
  if (!of_model) return tokenizer.special_ids();
  return special_ids_of_folder(folder.empty() ? "." : folder, &tokenizer, tokenizer.vocab(), notes);
}

std::int32_t named_id(const std::string& word, const Tokenizer* tokenizer, index_t vocab) {
  std::int32_t id = tokenizer == nullptr ? -1 : tokenizer->token_id(word);
  if (id >= 0) return id;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), id);
  if (error != std::errc{} || end != word.data() + word.size() || id < 0 || id >= vocab)
    throw_error(ExitCode::config, "\"{}\" is neither a token nor an id below {}",
                printable(word, 60), vocab);
  return id;
}

std::string special_text(const SpecialIds& ids) {
  nlohmann::ordered_json json;
  for (const auto& [name, id] : named_ids(ids)) json[name] = *id;
  if (!ids.ends.empty()) json["ends"] = ids.ends;
  if (ids.adds_bos) json["adds_bos"] = *ids.adds_bos;
  for (const auto& [name, unnamed] : named_flags(ids.unnamed))
    if (*unnamed) json["unnamed"].push_back(name);
  return json.dump();
}

SpecialIds special_ids_of_text(const std::string& text) {
  SpecialIds ids;
  try {
    const Json json = Json::parse(text);
    for (const auto& [name, id] : named_ids(ids)) *id = id_of(json.at(name), -1);
    for (const Json& end : json.value("ends", Json::array())) ids.ends.push_back(id_of(end, 0));
    if (json.contains("adds_bos")) ids.adds_bos = json.at("adds_bos").get<bool>();
    const Json names = json.value("unnamed", Json::array());
    for (const auto& [name, unnamed] : named_flags(ids.unnamed))
      *unnamed = std::ranges::find(names, Json(name)) != names.end();
  } catch (const Json::exception&) {
    throw_error(ExitCode::io, "{} are no special ids", printable(text, 60));
  }
  return ids;
}

}  // namespace t3d
