// Records that another program, an earlier version or a torn write may have left: a field that is
// not there, or of another kind, is nothing. Internal to `io`.
#pragma once
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace t3d {

/// Nothing unless `text` is one whole object.
[[nodiscard]] inline std::optional<nlohmann::json> parse_object(std::string_view text) {
  nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return json;
}

/// An integer from 0 on.
[[nodiscard]] inline std::optional<index_t> count_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_unsigned()) return std::nullopt;
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<index_t>::max());
  if (found->get<std::uint64_t>() > kMost) return std::nullopt;
  return found->get<index_t>();
}

[[nodiscard]] inline std::optional<double> number_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

[[nodiscard]] inline bool flag_of(const nlohmann::json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_boolean() && found->get<bool>();
}

[[nodiscard]] inline std::optional<std::string> text_of(const nlohmann::json& json,
                                                        const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

}  // namespace t3d
