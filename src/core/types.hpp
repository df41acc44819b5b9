// The two integer conventions of the whole program: extents and loops are signed 64-bit.
#pragma once
#include <cstdint>

namespace t3d {
using index_t = std::int64_t;
}  // namespace t3d
