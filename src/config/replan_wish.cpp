#include "config/replan_wish.hpp"

#include <charconv>

namespace t3d {

std::optional<ReplanWish> parse_replan_wish(const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos || colon + 1 == text.size()) return std::nullopt;
  ReplanWish wish;
  const char* const end = text.data() + colon;
  const auto [stop, error] = std::from_chars(text.data(), end, wish.step);
  if (error != std::errc() || stop != end || wish.step < 1) return std::nullopt;
  wish.file = text.substr(colon + 1);
  return wish;
}

}  // namespace t3d
