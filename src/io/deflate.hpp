// Raw deflate (RFC 1951), as browsers undo it (DecompressionStream "deflate-raw").
#pragma once
#include <string>
#include <string_view>

namespace t3d {

[[nodiscard]] std::string deflated(std::string_view bytes);

}  // namespace t3d
