// Tokens and their ids, both ways. Ids need not be without holes; no two tokens share one.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/types.hpp"
#include "tokenizer/parts/json_part.hpp"

namespace t3d::tok {

struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    return std::hash<std::string_view>{}(text);
  }
};
template <class Value>
using TextMap = std::unordered_map<std::string, Value, TextHash, std::equal_to<>>;

class Vocabulary {
 public:
  Vocabulary() = default;
  /// From an object {"token": id}.
  explicit Vocabulary(const JsonPart& part);

  /// False when the id has a token already, or the token an id.
  bool add(const std::string& token, std::int32_t id);
  /// -1 = none.
  [[nodiscard]] std::int32_t id(std::string_view token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? -1 : found->second;
  }
  /// Null where there is none.
  [[nodiscard]] const std::string* token(std::int32_t id) const {
    const auto at = static_cast<std::size_t>(id);
    return id < 0 || at >= tokens_.size() ? nullptr : tokens_[at];
  }
  [[nodiscard]] index_t size() const { return std::ssize(ids_); }    // tokens
  [[nodiscard]] index_t end() const { return std::ssize(tokens_); }  // highest id + 1
  [[nodiscard]] const TextMap<std::int32_t>& ids() const { return ids_; }

 private:
  TextMap<std::int32_t> ids_;
  std::vector<const std::string*> tokens_;  // by id; keys of ids_, which stay where they are
};

}  // namespace t3d::tok
