// A matrix of fp64 in host memory: what reference loops work on. Reading widens exactly; writing
// rounds once to the view's dtype.
#pragma once
#include <vector>

#include "device/tensor_view.hpp"

namespace t3d::reference {

class Matrix {
 public:
  Matrix(index_t rows, index_t cols)
      : rows_(rows), cols_(cols), data_(static_cast<std::size_t>(rows * cols), 0.0) {}

  [[nodiscard]] index_t rows() const { return rows_; }
  [[nodiscard]] index_t cols() const { return cols_; }
  [[nodiscard]] double& operator()(index_t r, index_t c) {
    return data_[static_cast<std::size_t>(r * cols_ + c)];
  }
  [[nodiscard]] double operator()(index_t r, index_t c) const {
    return data_[static_cast<std::size_t>(r * cols_ + c)];
  }
  [[nodiscard]] double* row(index_t r) { return data_.data() + r * cols_; }
  [[nodiscard]] const double* row(index_t r) const { return data_.data() + r * cols_; }

 private:
  index_t rows_, cols_;
  std::vector<double> data_;
};

/// Calls fn(T{}) with the C++ type of `type`.
template <class Fn>
void visit(DType type, Fn&& fn) {
  switch (type) {
    case DType::f64: return fn(double{});
    case DType::f32: return fn(float{});
    case DType::bf16: return fn(bf16{});
    case DType::f16: return fn(f16{});
    case DType::i32: return fn(std::int32_t{});
  }
}

[[nodiscard]] inline Matrix read(ConstTensorView view) {
  Matrix out(view.rows, view.cols);
  visit(view.dtype, [&]<class T>(T) {
    for (index_t r = 0; r < view.rows; ++r) {
      const T* from = view.as<T>() + r * view.ld;
      for (index_t c = 0; c < view.cols; ++c) out(r, c) = static_cast<double>(from[c]);
    }
  });
  return out;
}

/// An optional argument: empty data reads as zeros [1, cols].
[[nodiscard]] inline Matrix read_or_zeros(ConstTensorView view, index_t cols) {
  return view.data != nullptr ? read(view) : Matrix(1, cols);
}

inline void write(const Matrix& from, TensorView view) {
  visit(view.dtype, [&]<class T>(T) {
    for (index_t r = 0; r < view.rows; ++r) {
      T* to = view.as<T>() + r * view.ld;
      for (index_t c = 0; c < view.cols; ++c) to[c] = static_cast<T>(from(r, c));
    }
  });
}

}  // namespace t3d::reference
