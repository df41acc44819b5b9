#include "tokenizer/parts/json_part.hpp"

#include <algorithm>

#include "tokenizer/parts/utf8.hpp"

namespace t3d::tok {

void JsonPart::only(std::initializer_list<std::string_view> keys) const {
  if (!node_->is_object()) fail("an object is expected");
  for (const auto& [key, value] : node_->items())
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      fail("\"{}\" is not known here", key);
}

bool JsonPart::has(const char* key) const {
  if (!node_->is_object()) fail("an object is expected");
  const auto found = node_->find(key);
  return found != node_->end() && !found->is_null();
}

JsonPart JsonPart::at(const char* key) const {
  if (!node_->is_object()) fail("an object is expected");
  const auto found = node_->find(key);
  if (found == node_->end()) fail("\"{}\" is missing", key);
  return {*found, path_ + (path_.empty() ? "" : ".") + key};
}

std::vector<JsonPart> JsonPart::list(const char* key) const { return at(key).list(); }

std::vector<JsonPart> JsonPart::list() const {
  if (!node_->is_array()) fail("a list is expected");
  std::vector<JsonPart> parts;
  parts.reserve(node_->size());
  for (std::size_t n = 0; n < node_->size(); ++n)
    parts.emplace_back((*node_)[n], fmt::format("{}[{}]", path_, n));
  return parts;
}

std::string JsonPart::text() const {
  if (!node_->is_string()) fail("a text is expected");
  return node_->get<std::string>();
}

bool JsonPart::flag() const {
  if (!node_->is_boolean()) fail("true or false is expected");
  return node_->get<bool>();
}

double JsonPart::number() const {
  if (!node_->is_number()) fail("a number is expected");
  return node_->get<double>();
}

std::int64_t JsonPart::count() const {
  if (!node_->is_number_integer() ||
      (node_->is_number_unsigned() ? node_->get<std::uint64_t>() > (1ULL << 62U)
                                   : node_->get<std::int64_t>() < 0))
    fail("a whole number from 0 upward is expected");
  return node_->get<std::int64_t>();
}

std::int32_t JsonPart::id() const {
  const std::int64_t value = count();
  if (value > kMaxId) fail("{} is no id: ids end at {}", value, kMaxId);
  return static_cast<std::int32_t>(value);
}

char32_t JsonPart::letter() const {
  const std::string value = text();
  std::size_t at = 0;
  const char32_t only = value.empty() ? 0 : next_char(value, at);
  if (value.empty() || at != value.size()) fail("one character is expected");
  return only;
}

std::string in_quotes(std::string_view token) {
  constexpr std::size_t kMost = 60;
  std::string out = "\"";
  for (const char letter : token.substr(0, kMost)) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F)
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(letter));
    else
      out.push_back(letter);
  }
  return repaired(out) + (token.size() > kMost ? "...\"" : "\"");
}

}  // namespace t3d::tok
