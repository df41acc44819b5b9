// Texts that come from outside: are they UTF-8, and how to show them when they are not.
#pragma once
#include <string>
#include <string_view>

namespace t3d {

/// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
[[nodiscard]] bool is_utf8(std::string_view text);

/// U+0000 to U+001F and U+007F.
[[nodiscard]] bool is_control(char letter);

/// One line of UTF-8: control characters and bytes that are not UTF-8 become \xHH. Cut to about
/// `most` bytes.
[[nodiscard]] std::string printable(std::string_view text, std::size_t most = 1 << 20);

}  // namespace t3d
