// The width of a rank's logits in memory.
#pragma once
#include "core/types.hpp"

namespace t3d {

/// Columns in memory of a slice of the vocabulary. Rows of logits start at multiples of 64 numbers:
/// vocabularies are often odd, and 16-byte accesses and tensor cores want aligned rows.
[[nodiscard]] constexpr index_t logits_width(index_t slice) {
  constexpr index_t kUnit = 64;
  return (slice + kUnit - 1) / kUnit * kUnit;
}

}  // namespace t3d
