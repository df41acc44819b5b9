// Some editors begin a UTF-8 file with this mark. It is no part of the text.
#pragma once
#include <string_view>

namespace t3d {

inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

/// Of the begin of a file.
[[nodiscard]] inline std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

}  // namespace t3d
