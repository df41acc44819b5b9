// Base64 (RFC 4648, section 4), for tables in text files.
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace t3d::tok {

/// Nothing when it is none; padding is required.
[[nodiscard]] std::optional<std::string> base64_bytes(std::string_view text);

}  // namespace t3d::tok
