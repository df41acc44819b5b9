// A part of tokenizer.json and where it stands, so that every fault can be named: Error(io) with
// "model.merges[3]: ...".
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace t3d::tok {

class JsonPart {
 public:
  JsonPart(const nlohmann::json& node, std::string path) : node_(&node), path_(std::move(path)) {}

  [[nodiscard]] const nlohmann::json& node() const { return *node_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) const {
    throw_error(ExitCode::io, "{}: {}", path_, fmt::format(text, std::forward<Args>(args)...));
  }

  /// "type"; not every old file names the model's.
  [[nodiscard]] std::string type() const { return text("type"); }
  /// Keys that are none of these may mean something: Error.
  void only(std::initializer_list<std::string_view> keys) const;
  [[nodiscard]] bool has(const char* key) const;  // there, and not null
  [[nodiscard]] JsonPart at(const char* key) const;
  [[nodiscard]] std::vector<JsonPart> list(const char* key) const;
  [[nodiscard]] std::vector<JsonPart> list() const;

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] double number() const;
  [[nodiscard]] std::int64_t count() const;  // a whole number >= 0
  [[nodiscard]] std::int32_t id() const;     // a token's
  [[nodiscard]] char32_t letter() const;     // a text of one character
  [[nodiscard]] std::string text(const char* key) const { return at(key).text(); }
  [[nodiscard]] bool flag(const char* key) const { return at(key).flag(); }
  [[nodiscard]] bool flag_or(const char* key, bool otherwise) const {
    return has(key) ? flag(key) : otherwise;
  }
  [[nodiscard]] std::string text_or(const char* key, std::string otherwise) const {
    return has(key) ? text(key) : otherwise;
  }

 private:
  const nlohmann::json* node_;
  std::string path_;
};

/// Highest id of a token.
inline constexpr std::int64_t kMaxId = (1 << 24) - 1;

/// For messages: a token between quotes, unprintable bytes escaped, long ones cut.
[[nodiscard]] std::string in_quotes(std::string_view token);

}  // namespace t3d::tok
