#include "tokenizer/tokenizer.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/random.hpp"
#include "io/hdf5/token_file.hpp"
#include "io/posix_file.hpp"
#include "tokenizer/tiktoken.hpp"

namespace t3d {
namespace {

constexpr std::string_view kBytes = "bytes";

std::unique_ptr<Tokenizer> tokenizer_of_token_file(const std::string& path) {
  const TokenFileReader reader(path);
  const TokenFileInfo& info = reader.info();
  if (info.tokenizer != kBytes && info.model.empty())
    throw_error(ExitCode::io, "it carries no tokenizer");
  return make_tokenizer(info.tokenizer, info.model);
}

/// Whether a tokenizer.json is the one that goes out beside this tokenizer.model.
bool is_made_of(const std::string& json, const std::string& model) {
  if (!path_exists(json) || !path_exists(model)) return false;
  try {
    const std::string text = read_text_file(json);
    return std::ranges::any_of(make_sentencepiece_tokenizer(read_text_file(model))->files(),
                               [&](const TokenizerFile& file) {
                                 return file.name == "tokenizer.json" && file.text == text;
                               });
  } catch (const Error&) {  // no SentencePiece model: other programs name their own files so
    return false;
  }
}

std::string file_of_folder(const std::string& folder) {
  // A run knows the tokenizer that was trained here by its own file, not by one made of it.
  if (is_made_of(folder + "/tokenizer.json", folder + "/tokenizer.model"))
    return folder + "/tokenizer.model";
  for (const char* name : {"tokenizer.json", "tokenizer.model", "tiktoken.model"})
    if (std::string path = folder + "/" + name; path_exists(path)) return path;
  throw_error(ExitCode::no_input,
              "{}: no tokenizer.json, tokenizer.model or tiktoken.model in this folder", folder);
}

}  // namespace

std::string Tokenizer::decode(std::span<const std::int32_t> ids, Specials specials) const {
  const auto text = stream(specials);
  std::string all;
  for (const std::int32_t id : ids) all += text->feed(id);
  return all + text->finish();
}

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& model) {
  const std::size_t first = model.find_first_not_of(" \t\r\n");
  if (first != std::string::npos && model[first] == '{') return make_json_tokenizer(model);
  if (is_tiktoken(model)) return make_tiktoken_tokenizer(model);
  return make_sentencepiece_tokenizer(model);
}

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& kind, const std::string& model) {
  if (kind == kBytes) return make_byte_tokenizer();
  if (kind == "sentencepiece") return make_sentencepiece_tokenizer(model);
  if (kind == "tokenizer.json") return make_json_tokenizer(model);
  if (kind == "tiktoken") return make_tiktoken_tokenizer(model);
  throw_error(ExitCode::io, "tokenizers of kind \"{}\" are not known here", kind);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path) {
  const std::string file = is_folder(path) ? file_of_folder(path) : path;
  try {
    if (is_hdf5_file(file)) return tokenizer_of_token_file(file);
    return make_tokenizer(read_text_file(file));
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.find(file) != std::string::npos) throw;  // what cannot be read says so
    throw Error(error.code(), fmt::format("{}: {}", file, text), error.refused());
  }
}

std::uint64_t tokenizer_hash(std::string_view kind, std::string_view model) {
  if (kind == kBytes) return stream_of(kBytes);
  return model.empty() ? 0 : std::max<std::uint64_t>(stream_of(model), 1);
}

}  // namespace t3d
