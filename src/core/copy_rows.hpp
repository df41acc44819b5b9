// Rows of a matrix from one memory to another.
#pragma once
#include <cstddef>
#include <cstring>

#include "core/types.hpp"

namespace t3d {

/// `rows` rows of `row_bytes` each; `to_pitch` and `from_pitch`: bytes from row to row.
inline void copy_rows(std::byte* to, index_t to_pitch, const std::byte* from, index_t from_pitch,
                      index_t rows, index_t row_bytes) {
  if (to_pitch == row_bytes && from_pitch == row_bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(rows * row_bytes));
    return;
  }
  for (index_t row = 0; row < rows; ++row)
    std::memcpy(to + row * to_pitch, from + row * from_pitch, static_cast<std::size_t>(row_bytes));
}

}  // namespace t3d
