// TensorView: memory seen as a matrix of numbers. Non-owning, trivially copyable, any device:
// nobody above `ops` may dereference `data`.
#pragma once
#include <cstddef>

#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/types.hpp"

namespace t3d {

/// Row-major [rows, cols] with leading dimension `ld` >= cols (in elements). A vector is [1, n].
template <class Void>
struct BasicView {
  Void* data = nullptr;
  DType dtype = DType::f32;
  index_t rows = 0;
  index_t cols = 0;
  index_t ld = 0;

  BasicView() = default;
  BasicView(Void* data_, DType dtype_, index_t rows_, index_t cols_, index_t ld_)
      : data(data_), dtype(dtype_), rows(rows_), cols(cols_), ld(ld_) {}
  BasicView(Void* data_, DType dtype_, index_t rows_, index_t cols_)
      : BasicView(data_, dtype_, rows_, cols_, cols_) {}
  /// Mutable converts to const.
  template <class Other>
  requires(!std::is_same_v<Other, Void> && std::is_convertible_v<Other*, Void*>)
      BasicView(const BasicView<Other>& other)  // NOLINT: implicit on purpose
      : BasicView(other.data, other.dtype, other.rows, other.cols, other.ld) {}

  [[nodiscard]] index_t count() const { return rows * cols; }
  [[nodiscard]] index_t bytes() const { return count() * size_of(dtype); }
  [[nodiscard]] bool empty() const { return rows == 0 || cols == 0; }
  [[nodiscard]] bool contiguous() const { return ld == cols || rows <= 1; }

  /// Address of element (row, col); only `ops` and transports may read through it.
  [[nodiscard]] Void* at(index_t row, index_t col) const {
    using Byte = std::conditional_t<std::is_const_v<Void>, const std::byte, std::byte>;
    return static_cast<Byte*>(data) + (row * ld + col) * size_of(dtype);
  }
  [[nodiscard]] BasicView row_range(index_t first, index_t n) const {
    T3D_CHECK(first >= 0 && n >= 0 && first + n <= rows, "rows {}+{} of {}", first, n, rows);
    return {at(first, 0), dtype, n, cols, ld};
  }
  [[nodiscard]] BasicView col_range(index_t first, index_t n) const {
    T3D_CHECK(first >= 0 && n >= 0 && first + n <= cols, "cols {}+{} of {}", first, n, cols);
    return {at(0, first), dtype, rows, n, ld};
  }
  /// The same contiguous memory as one row.
  [[nodiscard]] BasicView flat() const {
    T3D_CHECK(contiguous(), "a strided view has no flat form");
    return {data, dtype, 1, count(), count()};
  }
  /// The same contiguous memory with another shape.
  [[nodiscard]] BasicView reshaped(index_t new_rows, index_t new_cols) const {
    T3D_CHECK(contiguous() && new_rows * new_cols == count(), "{}x{} is not {}x{}", rows, cols,
              new_rows, new_cols);
    return {data, dtype, new_rows, new_cols, new_cols};
  }
  template <class T>
  [[nodiscard]] auto* as() const {
    using Out = std::conditional_t<std::is_const_v<Void>, const T, T>;
    return static_cast<Out*>(data);
  }
};

using TensorView = BasicView<void>;
using ConstTensorView = BasicView<const void>;

}  // namespace t3d
