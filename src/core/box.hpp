// Boxes of a matrix's index space. Pure arithmetic.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Rows [row0, row0+rows) x columns [col0, col0+cols).
struct Box {
  index_t row0 = 0, col0 = 0, rows = 0, cols = 0;
  [[nodiscard]] index_t row1() const { return row0 + rows; }
  [[nodiscard]] index_t col1() const { return col0 + cols; }
  [[nodiscard]] index_t count() const { return rows * cols; }
  [[nodiscard]] bool empty() const { return rows <= 0 || cols <= 0; }
  friend bool operator==(const Box&, const Box&) = default;
};

/// A box of a global tensor, row-major and contiguous at element `offset` of a flat buffer.
struct PlacedBox {
  Box box;
  index_t offset = 0;
  friend bool operator==(const PlacedBox&, const PlacedBox&) = default;
};

/// Empty (rows = 0) when they do not meet.
[[nodiscard]] Box intersect(const Box& a, const Box& b);

/// The same elements in fewer boxes: neighbours that together form a box become one. Input boxes
/// that overlap stay as they are.
[[nodiscard]] std::vector<Box> merge_boxes(std::vector<Box> boxes);

/// Empty text when `boxes` cover [rows, cols] exactly once, else what is wrong. O(n log n). Any
/// numbers may come.
[[nodiscard]] std::string cover_fault(const std::vector<Box>& boxes, index_t rows, index_t cols);

/// "12+4x0+768"
[[nodiscard]] std::string describe(const Box& box);

}  // namespace t3d
