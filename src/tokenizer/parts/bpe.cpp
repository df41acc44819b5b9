#include "tokenizer/parts/bpe.hpp"

#include <algorithm>

#include "tokenizer/parts/byte_level.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, a space in SentencePiece's texts

struct Pair {
  std::string left, right;
};

// ["a", "b"], or "a b" as in older files.
Pair pair_of(const JsonPart& part) {
  if (part.node().is_array()) {
    const auto both = part.list();
    if (both.size() != 2) part.fail("a merge has two tokens, not {}", both.size());
    return {both[0].text(), both[1].text()};
  }
  const std::string text = part.text();
  const std::size_t gap = text.find(' ');
  if (gap == std::string::npos || text.find(' ', gap + 1) != std::string::npos)
    part.fail("{} is not two tokens with a space between them", in_quotes(text));
  return {text.substr(0, gap), text.substr(gap + 1)};
}

// Fills in options.mark_begins, too.
Merges merges_of(const JsonPart& list, const Vocabulary& vocabulary, BpeOptions& options) {
  if (!list.node().is_array()) list.fail("a list is expected");
  const std::size_t prefix_bytes = options.prefix.size();
  options.mark_begins = options.prefix.empty() && options.suffix.empty() &&
                        !options.whole_words_first && vocabulary.id(kMark) >= 0;
  Merges merges;
  std::int32_t rank = 0;
  for (std::size_t n = 0; n < list.node().size(); ++n) {
    const auto& node = list.node()[n];
    if (node.is_string() && node.get_ref<const std::string&>().starts_with("#version")) continue;
    const JsonPart part(node, fmt::format("{}[{}]", list.path(), n));
    const Pair pair = pair_of(part);
    const auto known = [&](const std::string& token) {
      const std::int32_t id = vocabulary.id(token);
      if (id < 0) part.fail("{} is not in the vocabulary", in_quotes(token));
      return id;
    };
    const std::int32_t left = known(pair.left), right = known(pair.right);
    if (pair.right.size() < prefix_bytes) part.fail("{} has no prefix", in_quotes(pair.right));
    if (pair.right.starts_with(kMark) && !pair.left.ends_with(kMark)) options.mark_begins = false;
    merges.add(left, right, rank++, known(pair.left + pair.right.substr(prefix_bytes)));
  }
  return merges;
}

}  // namespace

std::unique_ptr<Model> make_bpe(const JsonPart& part) {
  part.only({"type", "dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
             "fuse_unk", "byte_fallback", "ignore_merges", "vocab", "merges"});
  if (part.has("dropout") && part.at("dropout").number() != 0)
    part.at("dropout").fail("merges left out at random are for training; set it to null");
  BpeOptions options;
  if (part.has("unk_token")) options.unknown_token = part.text("unk_token");
  options.prefix = part.text_or("continuing_subword_prefix", "");
  options.suffix = part.text_or("end_of_word_suffix", "");
  options.fuse_unknown = part.flag_or("fuse_unk", false);
  options.byte_fallback = part.flag_or("byte_fallback", false);
  options.whole_words_first = part.flag_or("ignore_merges", false);
  Vocabulary vocabulary(part.at("vocab"));
  Merges merges = merges_of(part.at("merges"), vocabulary, options);
  return std::make_unique<Bpe>(std::move(vocabulary), std::move(merges), std::move(options));
}

Bpe::Bpe(Vocabulary vocabulary, Merges merges, BpeOptions options)
    : vocabulary_(std::move(vocabulary)), merges_(std::move(merges)), options_(std::move(options)) {
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto value = static_cast<std::uint8_t>(byte);
    fallback_[byte] = vocabulary_.id(byte_token(value));
    letters_[byte] = vocabulary_.id(utf8_of(letter_of_byte(value)));
  }
  has_letters_ = options_.prefix.empty() && options_.suffix.empty() &&
                 std::none_of(letters_.begin(), letters_.end(), [](auto id) { return id < 0; });
}

std::int32_t Bpe::unknown() const {
  return options_.unknown_token ? vocabulary_.id(*options_.unknown_token) : -1;
}

void Bpe::encode(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (options_.whole_words_first)
    if (const std::int32_t id = vocabulary_.id(word); id >= 0) return ids.push_back(id);
  std::vector<std::int32_t> symbols = symbols_of(word);
  merges_.apply(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

// Before a mark that is not behind another one.
std::size_t Bpe::part_end(std::string_view word, std::size_t at) const {
  if (!options_.mark_begins) return word.size();
  while (true) {
    at = word.find(kMark, at + 1);
    if (at == std::string_view::npos) return word.size();
    if (!word.substr(0, at).ends_with(kMark)) return at;
  }
}

void Bpe::encode_bytes(std::string_view word, std::vector<std::int32_t>& ids) const {
  if (!has_letters_ || options_.whole_words_first) return Model::encode_bytes(word, ids);
  std::vector<std::int32_t> symbols(word.size());
  for (std::size_t n = 0; n < word.size(); ++n)
    symbols[n] = letters_[static_cast<std::uint8_t>(word[n])];
  merges_.apply(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

bool Bpe::add_bytes(std::string_view symbol, std::vector<std::int32_t>& symbols) const {
  const auto id = [&](char byte) { return fallback_[static_cast<std::uint8_t>(byte)]; };
  if (std::any_of(symbol.begin(), symbol.end(), [&](char byte) { return id(byte) < 0; }))
    return false;
  for (const char byte : symbol) symbols.push_back(id(byte));
  return true;
}

// What is unknown is held back until the next known character, so that several can be one; bytes do
// not end that. A character that nothing stands in for is left out.
std::vector<std::int32_t> Bpe::symbols_of(std::string_view word) const {
  std::vector<std::int32_t> symbols;
  symbols.reserve(word.size());
  std::string symbol;
  bool held = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t begin = at;
    next_char(word, at);
    std::string_view text = word.substr(begin, at - begin);
    const bool first = begin == 0, last = at == word.size();
    if ((!first && !options_.prefix.empty()) || (last && !options_.suffix.empty())) {
      symbol.assign(first ? "" : options_.prefix).append(text).append(last ? options_.suffix : "");
      text = symbol;
    }
    if (const std::int32_t id = vocabulary_.id(text); id >= 0) {
      if (std::exchange(held, false)) symbols.push_back(unknown());
      symbols.push_back(id);
      continue;
    }
    if (options_.byte_fallback && add_bytes(text, symbols)) continue;
    if (!options_.unknown_token) continue;
    if (unknown() < 0)
      throw_error(ExitCode::config,
                  "{} is not in the tokenizer's vocabulary, and neither is unk_token {}",
                  in_quotes(text), in_quotes(*options_.unknown_token));
    if (held && !options_.fuse_unknown) symbols.push_back(unknown());
    held = true;
  }
  if (held) symbols.push_back(unknown());
  return symbols;
}

}  // namespace t3d::tok
