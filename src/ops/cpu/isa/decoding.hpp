// What one new row of a sequence needs: its products with the rows of a weight, which are read once
// and in the order in which they lie, and its attention to what is kept. Nothing here knows of
// other rows, so a row's result cannot depend on them.
#pragma once
#include "ops/cpu/isa/attention.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

/// The sum of the lanes, by halves.
template <int Width = kLanes / 2>
inline float sum_of_lanes(const Vec& v) {
  if constexpr (Width == 0)
    return v[0];
  else
    return sum_of_lanes<Width / 2>(v +
                                   rotated<Width>(v, std::make_integer_sequence<int, kLanes>{}));
}

template <int Columns, class T>
inline void dots_of(const float* __restrict x, const T* __restrict w, index_t ld, index_t depth,
                    float* __restrict out) {
  Vec sum[static_cast<std::size_t>(Columns)];
#pragma GCC unroll 8
  for (int n = 0; n < Columns; ++n) sum[n] = Vec{};
  index_t k = 0;
  for (; k + kLanes <= depth; k += kLanes) {
    const Vec left = load(x + k);
#pragma GCC unroll 8
    for (int n = 0; n < Columns; ++n) sum[n] += left * load(w + n * ld + k);
  }
#pragma GCC unroll 8
  for (int n = 0; n < Columns; ++n) {
    float total = sum_of_lanes(sum[n]);
    for (index_t rest = k; rest < depth; ++rest) total += x[rest] * widen(w[n * ld + rest]);
    out[n] = total;
  }
}

template <class T>
void dots(const float* x, const T* w, index_t ld, index_t depth, index_t columns, float* out) {
  if (columns >= kDots) return dots_of<kDots>(x, w, ld, depth, out);
  for (index_t n = 0; n < columns; ++n) dots_of<1>(x, w + n * ld, ld, depth, out + n);
}

/// Scores become weights whose sum is returned.
inline float weights_of(float* __restrict scores, index_t count) {
  const float top = largest(scores, count, kHidden);
  float total = 0;
  for (index_t u = 0; u < count; ++u) {
    scores[u] = exp_clamped(scores[u] - top);
    total += scores[u];
  }
  return total;
}

/// acc[d] = sum over u of weights[u] values[u, d] for Vectors * kLanes columns.
template <int Vectors, class T>
inline void add_weighted(const float* __restrict weights, index_t count, const T* values,
                         index_t ld, float* __restrict acc) {
  Vec sum[static_cast<std::size_t>(Vectors)];
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) sum[v] = Vec{};
  for (index_t u = 0; u < count; ++u)
#pragma GCC unroll 4
    for (int v = 0; v < Vectors; ++v) sum[v] += weights[u] * load(values + u * ld + v * kLanes);
#pragma GCC unroll 4
  for (int v = 0; v < Vectors; ++v) store(sum[v], acc + v * kLanes);
}

template <class T>
void kept_attention(const KeptHeads<T>& h, float* workspace) {
  float *scores = workspace, *q = scores + h.count, *acc = q + h.size;
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(h.size));
  for (index_t head = 0; head < h.heads; ++head) {
    const T* query = h.q + head * h.size;
    for (index_t d = 0; d < h.size; ++d) q[d] = widen(query[d]) * scale;
    for (index_t u = 0; u < h.count; u += kDots)
      dots(q, h.keys + u * h.ld, h.ld, h.size, smaller(kDots, h.count - u), scores + u);
    const float inverse = 1.0F / weights_of(scores, h.count);
    index_t d = 0;
    for (; d + 4 * kLanes <= h.size; d += 4 * kLanes)
      add_weighted<4>(scores, h.count, h.values + d, h.ld, acc + d);
    for (; d + kLanes <= h.size; d += kLanes)
      add_weighted<1>(scores, h.count, h.values + d, h.ld, acc + d);
    for (; d < h.size; ++d) {
      acc[d] = 0;
      for (index_t u = 0; u < h.count; ++u) acc[d] += scores[u] * widen(h.values[u * h.ld + d]);
    }
    T* out = h.out + head * h.size;
    for (d = 0; d < h.size; ++d) narrow(acc[d] * inverse, out[d]);
  }
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
