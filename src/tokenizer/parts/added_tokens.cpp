#include "tokenizer/parts/added_tokens.hpp"

#include <algorithm>

#include "tokenizer/parts/unicode.hpp"
#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {
namespace {

AddedToken read(const JsonPart& part) {
  part.only({"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"});
  AddedToken token;
  token.id = part.at("id").id();
  token.content = part.text("content");
  token.single_word = part.flag("single_word");
  token.lstrip = part.flag("lstrip");
  token.rstrip = part.flag("rstrip");
  token.normalized = part.flag("normalized");
  token.special = part.flag("special");
  return token;
}

}  // namespace

AddedTokens::AddedTokens(const JsonPart& list, const Vocabulary& vocabulary,
                         const Normalizer* normalizer) {
  TextMap<std::int32_t> ids;
  for (const JsonPart& part : list.list()) {
    AddedToken token = read(part);
    if (token.content.empty()) continue;
    const std::int32_t known = vocabulary.id(token.content);
    if (known >= 0 && known != token.id)
      part.fail("{} has id {} here and {} in the vocabulary", in_quotes(token.content), token.id,
                known);
    const std::string* other = vocabulary.token(token.id);
    if (other != nullptr && *other != token.content)
      part.fail("{} has id {}, which is that of {} in the vocabulary", in_quotes(token.content),
                token.id, in_quotes(*other));
    if (!by_id_.emplace(token.id, tokens_.size()).second) part.fail("id {} comes twice", token.id);
    if (!ids.emplace(token.content, token.id).second)
      part.fail("{} comes twice", in_quotes(token.content));
    tokens_.push_back(std::move(token));
  }
  for (std::size_t n = 0; n < tokens_.size(); ++n) {
    const AddedToken& token = tokens_[n];
    Finder& finder = token.normalized ? normalized_ : plain_;
    std::string content = token.content;
    if (token.normalized && normalizer != nullptr) normalizer->apply(content);
    if (content.empty())
      list.fail("{} is nothing when normalized, and would be found everywhere",
                in_quotes(token.content));
    // Special ones come first: where two look alike when normalized, the first one counts.
    bool taken = false;
    finder.trie.each_prefix(content, 0, [&](std::size_t bytes, std::int32_t before) {
      taken |= bytes == content.size() &&
               (tokens_[static_cast<std::size_t>(before)].special || !token.special);
    });
    if (!taken) finder.trie.add(content, static_cast<std::int32_t>(n));
    finder.empty = false;
  }
}

const AddedToken* AddedTokens::by_id(std::int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

bool AddedTokens::stands_alone(std::string_view text, std::size_t begin, std::size_t end) {
  const auto word_at = [&](std::size_t at) { return is_word_char(next_char(text, at)); };
  const bool before = begin > 0 && word_at(begin - bytes_before(text, begin));
  return !before && !(end < text.size() && word_at(end));
}

// The leftmost token, the longest of those that begin there; the search goes on behind it.
std::vector<AddedSpan> AddedTokens::spans(std::string_view text, const Finder& finder) const {
  std::vector<AddedSpan> all;
  std::size_t begin = 0;  // of what no token has yet
  for (std::size_t at = 0; !finder.empty && at < text.size();) {
    std::size_t bytes = 0;
    std::int32_t which = -1;
    if (finder.trie.may_begin(text[at]))
      finder.trie.each_prefix(text, at, [&](std::size_t length, std::int32_t value) {
        bytes = length;
        which = value;
      });
    if (which < 0) {
      ++at;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<std::size_t>(which)];
    std::size_t from = at, to = at + bytes;
    at = to;
    if (token.single_word && !stands_alone(text, from, to)) continue;
    while (token.lstrip && from > begin) {
      std::size_t last = from - bytes_before(text, from), next = last;
      if (!is_space(next_char(text, next))) break;
      from = std::max(last, begin);
    }
    // Of white space that the token before it has taken, nothing is left for it.
    if (token.lstrip && (from = std::max(from, begin)) >= to) continue;
    for (std::size_t next = to; token.rstrip && next < text.size();) {
      if (!is_space(next_char(text, next))) break;
      to = next;
    }
    if (begin < from) all.push_back({begin, from, -1});
    all.push_back({from, to, token.id});
    begin = to;
  }
  if (begin < text.size()) all.push_back({begin, text.size(), -1});
  return all;
}

}  // namespace t3d::tok
