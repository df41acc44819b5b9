// Extents and strides of attention's tensors as cuDNN wants them: always four, (sequence, head,
// row, column). Plain arithmetic without cuDNN, so that it can be checked everywhere.
#pragma once
#include <array>

#include "core/types.hpp"

namespace t3d::cuda {

using CudnnExtents = std::array<index_t, 4>;

struct CudnnLayout {
  CudnnExtents dims{}, strides{};
  friend bool operator==(const CudnnLayout&, const CudnnLayout&) = default;
};

/// Without gaps, the last extent contiguous.
[[nodiscard]] constexpr CudnnLayout packed(const CudnnExtents& dims) {
  return {dims, {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}};
}

/// The same memory with rows and columns exchanged.
[[nodiscard]] constexpr CudnnLayout transposed(const CudnnLayout& x) {
  return {{x.dims[0], x.dims[1], x.dims[3], x.dims[2]},
          {x.strides[0], x.strides[1], x.strides[3], x.strides[2]}};
}

/// One attention call.
struct CudnnAttentionShape {
  index_t sequences = 0, length = 0, heads = 0, kv_heads = 0, head_size = 0;
  bool causal = false;

  /// `count` heads side by side in a matrix [sequences*length, ...] with this leading dimension.
  [[nodiscard]] constexpr CudnnLayout heads_in_rows(index_t count, index_t ld) const {
    return {{sequences, count, length, head_size}, {length * ld, head_size, ld, 1}};
  }
  /// Every query with every key, of all heads.
  [[nodiscard]] constexpr CudnnLayout scores() const {
    return packed({sequences, heads, length, length});
  }
  /// One number per query: cuDNN takes it in no other order (before 9.26).
  [[nodiscard]] constexpr CudnnLayout statistics() const {
    return packed({sequences, heads, length, 1});
  }
};

/// One call's share of the backward pass.
struct CudnnShare {
  index_t sequences = 0, kv_heads = 0;
  friend bool operator==(const CudnnShare&, const CudnnShare&) = default;
};

[[nodiscard]] constexpr index_t largest_divisor_up_to(index_t n, index_t limit) {
  index_t divisor = n;
  while (divisor > 1 && (divisor > limit || n % divisor != 0)) --divisor;
  return divisor;
}

/// What cuDNN keeps in the backward pass for one sequence and one kv head with its query heads: dS
/// in blocks of 64 queries and 128 keys, and where heads share keys, dK and dV of each of them; all
/// of 2 bytes.
[[nodiscard]] constexpr index_t backward_bytes_of_kv_head(const CudnnAttentionShape& shape) {
  constexpr index_t kQueries = 64, kKeys = 128, kSize = 2;
  const index_t group = shape.heads / shape.kv_heads;
  const index_t queries = (shape.length + kQueries - 1) / kQueries * kQueries;
  const index_t keys = (shape.length + kKeys - 1) / kKeys * kKeys;
  const index_t shared = group > 1 ? 2 * shape.length * shape.head_size : 0;
  return kSize * group * (queries * keys + shared);
}

/// The largest equal shares that stay within `limit` bytes: whole sequences if one fits, else
/// some of the heads of one; one kv head where not even that fits.
[[nodiscard]] constexpr CudnnShare backward_share(const CudnnAttentionShape& shape, index_t limit) {
  const index_t fitting = limit / backward_bytes_of_kv_head(shape);
  if (fitting < shape.kv_heads) return {1, largest_divisor_up_to(shape.kv_heads, fitting)};
  return {largest_divisor_up_to(shape.sequences, fitting / shape.kv_heads), shape.kv_heads};
}

}  // namespace t3d::cuda
