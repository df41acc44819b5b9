#include "tokenizer/parts/vocabulary.hpp"

namespace t3d::tok {

Vocabulary::Vocabulary(const JsonPart& part) {
  if (!part.node().is_object()) part.fail("an object of tokens and ids is expected");
  ids_.reserve(part.node().size());
  for (const auto& [token, node] : part.node().items()) {
    const JsonPart entry(node, part.path() + "." + in_quotes(token));
    const std::int32_t number = entry.id();
    if (!add(token, number))
      entry.fail("{} has id {}, too", in_quotes(*this->token(number)), number);
  }
}

bool Vocabulary::add(const std::string& token, std::int32_t id) {
  const auto at = static_cast<std::size_t>(id);
  if (at < tokens_.size() && tokens_[at] != nullptr) return false;
  const auto [entry, fresh] = ids_.emplace(token, id);
  if (!fresh) return false;
  if (at >= tokens_.size()) tokens_.resize(at + 1, nullptr);
  tokens_[at] = &entry->first;
  return true;
}

}  // namespace t3d::tok
