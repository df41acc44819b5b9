// Flash attention (Dao et al. 2022): tiles of kTile x kTile scores with a running maximum and sum,
// so nothing of size length^2 exists. Keys and values of a head are widened once into the workspace
// (keys also transposed, tile by tile), then every product is a tile_gemm. Causal tiles above the
// diagonal are skipped.
#pragma once
#include "ops/cpu/isa/tile.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

constexpr index_t kTile = 64;
constexpr float kHidden = -1e30F;  // a score that is no score; its exponential vanishes

inline index_t padded(index_t n, index_t unit) { return (n + unit - 1) / unit * unit; }
inline index_t smaller(index_t a, index_t b) { return a < b ? a : b; }

/// rows x size from `from`, zero-filled to [padded_rows, width].
template <class T>
void pack_rows(const T* from, index_t ld, index_t rows, index_t size, index_t padded_rows,
               index_t width, float factor, float* to) {
  for (index_t r = 0; r < padded_rows; ++r, to += width) {
    const index_t count = r < rows ? size : 0;
    const T* __restrict source = from + (r < rows ? r * ld : 0);
    for (index_t d = 0; d < count; ++d) to[d] = widen(source[d]) * factor;
    for (index_t d = count; d < width; ++d) to[d] = 0.0F;
  }
}

/// Tiles of kTile rows, each transposed to [size, kTile] and zero-filled.
template <class T>
void pack_transposed(const T* from, index_t ld, index_t rows, index_t size, float* to) {
  for (index_t first = 0; first < rows; first += kTile, to += size * kTile) {
    const index_t count = smaller(kTile, rows - first);
    for (index_t d = 0; d < size; ++d) {
      for (index_t r = 0; r < count; ++r) to[d * kTile + r] = widen(from[(first + r) * ld + d]);
      for (index_t r = count; r < kTile; ++r) to[d * kTile + r] = 0.0F;
    }
  }
}

/// Keys that query `row` of tile (i, j) may see, counted within the tile.
inline index_t visible(index_t query, index_t first_key, index_t length, bool causal) {
  const index_t last = causal ? query + 1 : length;
  return smaller(kTile, last - first_key);
}

/// Where the pieces of the workspace lie; `rows` is the length rounded up to whole tiles.
struct Workspace {
  index_t width, rows;
  float *keys_t, *values_t, *keys, *dkeys, *dvalues;  // whole heads
  float *q, *dout, *acc, *p, *ds, *max, *sum;         // one tile

  Workspace(index_t length, index_t size, float* base)
      : width(padded(size, kLanes)), rows(padded(length, kTile)) {
    const auto take = [&](index_t count) {  // every count is a multiple of kTile
      float* piece = base;
      base += count;
      return piece;
    };
    keys_t = take(rows * size), values_t = take(rows * size);
    keys = take(rows * width), dkeys = take(rows * width), dvalues = take(rows * width);
    q = take(kTile * width), dout = take(kTile * width), acc = take(kTile * width);
    p = take(kTile * kTile), ds = take(kTile * kTile), max = take(kTile), sum = take(kTile);
  }
};

inline index_t attention_workspace(index_t length, index_t size) {
  const index_t width = padded(size, kLanes), rows = padded(length, kTile);
  return rows * (2 * size + 3 * width) + kTile * (3 * width + 2 * kTile + 2);
}

/// One row of scores becomes exp(score - max) with the running maximum; hidden entries become 0.
inline void softmax_row(float* __restrict row, index_t count, float* __restrict acc, index_t width,
                        float& max, float& sum) {
  for (index_t u = count; u < kTile; ++u) row[u] = kHidden;
  const float top = largest(row, kTile, max);
  float total = 0;
  for (index_t u = 0; u < kTile; ++u) {
    const float e = exp_clamped(row[u] - top);
    row[u] = e;
    total += e;
  }
  for (index_t u = count; u < kTile; ++u) row[u] = 0.0F;
  sum += total;
  if (top == max) return;
  const float shrink = exp_clamped(max - top);
  for (index_t d = 0; d < width; ++d) acc[d] *= shrink;
  sum = (sum - total) * shrink + total;
  max = top;
}

template <class T>
void forward_tile_row(const AttentionHead<T>& head, const Workspace& ws, index_t first,
                      float scale) {
  const index_t count = smaller(kTile, head.length - first), width = ws.width;
  pack_rows(head.q + first * head.ld, head.ld, count, head.size, count, width, scale, ws.q);
  for (index_t i = 0; i < count * width; ++i) ws.acc[i] = 0.0F;
  for (index_t i = 0; i < count; ++i) ws.max[i] = kHidden, ws.sum[i] = 0.0F;
  const index_t keys = head.causal ? first + count : head.length;
  for (index_t key = 0; key < keys; key += kTile) {
    tile_gemm({ws.q, width, 1}, ws.keys_t + key * head.size, kTile, count, kTile, head.size, false,
              ws.p, kTile);
    for (index_t i = 0; i < count; ++i)
      softmax_row(ws.p + i * kTile, visible(first + i, key, head.length, head.causal),
                  ws.acc + i * width, width, ws.max[i], ws.sum[i]);
    tile_gemm({ws.p, kTile, 1}, ws.keys + key * width, width, count, width,
              smaller(kTile, head.length - key), true, ws.acc, width);
  }
  for (index_t i = 0; i < count; ++i) {
    const float inverse = 1.0F / ws.sum[i];
    T* __restrict out = head.out + (first + i) * head.out_ld;
    const float* __restrict acc = ws.acc + i * width;
    for (index_t d = 0; d < head.size; ++d) narrow(acc[d] * inverse, out[d]);
    head.lse[(first + i) * head.lse_ld] = ws.max[i] + __builtin_logf(ws.sum[i]);
  }
}

template <class T>
void attention_forward(const AttentionHead<T>& head, float* workspace) {
  const Workspace ws(head.length, head.size, workspace);
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(head.size));
  pack_transposed(head.k, head.ld, head.length, head.size, ws.keys_t);
  pack_rows(head.v, head.ld, head.length, head.size, head.length, ws.width, 1.0F, ws.keys);
  for (index_t first = 0; first < head.length; first += kTile)
    forward_tile_row(head, ws, first, scale);
}

/// p = exp(s - lse) and ds = p (dp - delta) for one row of a tile; hidden entries become 0.
inline void backward_row(float* __restrict p, float* __restrict ds, index_t count, float lse,
                         float delta) {
  for (index_t u = 0; u < kTile; ++u) {
    const float value = exp_clamped(p[u] - lse);
    p[u] = value;
    ds[u] = value * (ds[u] - delta);
  }
  for (index_t u = count; u < kTile; ++u) p[u] = 0.0F, ds[u] = 0.0F;
}

/// The products of one tile: queries [first, first+count) with the keys at `key`.
template <class T>
void backward_tile(const AttentionHead<T>& head, const Workspace& ws, index_t first, index_t count,
                   index_t key) {
  const index_t width = ws.width, keys = smaller(kTile, head.length - key);
  tile_gemm({ws.q, width, 1}, ws.keys_t + key * head.size, kTile, count, kTile, head.size, false,
            ws.p, kTile);
  tile_gemm({ws.dout, width, 1}, ws.values_t + key * head.size, kTile, count, kTile, head.size,
            false, ws.ds, kTile);
  for (index_t i = 0; i < count; ++i)
    backward_row(ws.p + i * kTile, ws.ds + i * kTile,
                 visible(first + i, key, head.length, head.causal), ws.max[i], ws.sum[i]);
  tile_gemm({ws.p, 1, kTile}, ws.dout, width, keys, width, count, true, ws.dvalues + key * width,
            width);
  tile_gemm({ws.ds, 1, kTile}, ws.q, width, keys, width, count, true, ws.dkeys + key * width,
            width);
  tile_gemm({ws.ds, kTile, 1}, ws.keys + key * width, width, count, width, keys, true, ws.acc,
            width);
}

/// lse and delta = sum dout out of the tile's queries, kept in ws.max and ws.sum.
template <class T>
void backward_prepare(const AttentionHead<T>& head, const Workspace& ws, index_t first,
                      index_t count) {
  for (index_t i = 0; i < count; ++i) {
    const T* out = head.out + (first + i) * head.out_ld;
    float delta = 0;
    for (index_t d = 0; d < head.size; ++d) delta += ws.dout[i * ws.width + d] * widen(out[d]);
    ws.sum[i] = delta;
    ws.max[i] = head.lse[(first + i) * head.lse_ld];
  }
}

template <class T>
void backward_head(const AttentionHead<T>& head, const Workspace& ws, const T* dout,
                   index_t dout_ld, T* dq, index_t grad_ld) {
  const float scale = 1.0F / __builtin_sqrtf(static_cast<float>(head.size));
  for (index_t first = 0; first < head.length; first += kTile) {
    const index_t count = smaller(kTile, head.length - first), width = ws.width;
    pack_rows(head.q + first * head.ld, head.ld, count, head.size, count, width, scale, ws.q);
    pack_rows(dout + first * dout_ld, dout_ld, count, head.size, count, width, 1.0F, ws.dout);
    backward_prepare(head, ws, first, count);
    for (index_t i = 0; i < count * width; ++i) ws.acc[i] = 0.0F;
    const index_t keys = head.causal ? first + count : head.length;
    for (index_t key = 0; key < keys; key += kTile) backward_tile(head, ws, first, count, key);
    for (index_t i = 0; i < count; ++i) {
      T* __restrict to = dq + (first + i) * grad_ld;
      for (index_t d = 0; d < head.size; ++d) narrow(ws.acc[i * width + d] * scale, to[d]);
    }
  }
}

template <class T>
void attention_backward(const AttentionGroup<T>& group, float* workspace) {
  AttentionHead<T> head = group.head;
  const Workspace ws(head.length, head.size, workspace);
  pack_transposed(head.k, head.ld, head.length, head.size, ws.keys_t);
  pack_transposed(head.v, head.ld, head.length, head.size, ws.values_t);
  pack_rows(head.k, head.ld, head.length, head.size, head.length, ws.width, 1.0F, ws.keys);
  for (index_t i = 0; i < head.length * ws.width; ++i) ws.dkeys[i] = 0.0F, ws.dvalues[i] = 0.0F;
  for (index_t g = 0; g < group.heads; ++g) {
    backward_head(head, ws, group.dout + g * head.size, group.dout_ld, group.dq + g * head.size,
                  group.grad_ld);
    head.q += head.size, head.out += head.size, head.lse += 1;
  }
  for (index_t r = 0; r < head.length; ++r)
    for (index_t d = 0; d < head.size; ++d) {
      narrow(ws.dkeys[r * ws.width + d], group.dk[r * group.grad_ld + d]);
      narrow(ws.dvalues[r * ws.width + d], group.dv[r * group.grad_ld + d]);
    }
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
