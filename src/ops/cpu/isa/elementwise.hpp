// Activations, residual adds, conversions, rotary embedding, dropout and sums.
#pragma once
#include "ops/cpu/isa/numbers.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

// tanh(u) = 2 sigmoid(2u) - 1 makes gelu(x) = x sigmoid(2u); these are the factors of 2u.
constexpr float kGeluLinear = 1.5957691216057308F;  // 2 sqrt(2/pi)
constexpr float kGeluCubic = 1.5957691216057308F * 0.044715F;

template <class T>
void gelu(const T* __restrict x, T* __restrict y, index_t n) {
  for (index_t i = 0; i < n; ++i) {
    const float v = widen(x[i]);
    narrow(v * sigmoid(v * (kGeluLinear + kGeluCubic * v * v)), y[i]);
  }
}

template <class T>
void gelu_backward(const T* __restrict x, const T* __restrict dy, T* __restrict dx, index_t n) {
  for (index_t i = 0; i < n; ++i) {
    const float v = widen(x[i]);
    const float s = sigmoid(v * (kGeluLinear + kGeluCubic * v * v));
    const float slope = kGeluLinear + 3.0F * kGeluCubic * v * v;
    narrow(widen(dy[i]) * (s + v * s * (1.0F - s) * slope), dx[i]);
  }
}

template <class T>
void swiglu(const T* __restrict gate, const T* __restrict up, T* __restrict y, index_t n) {
  for (index_t i = 0; i < n; ++i) {
    const float g = widen(gate[i]);
    narrow(g * sigmoid(g) * widen(up[i]), y[i]);
  }
}

template <class T>
void swiglu_backward(const T* __restrict gate, const T* __restrict up, const T* __restrict dy,
                     T* __restrict dgate, T* __restrict dup, index_t n) {
  for (index_t i = 0; i < n; ++i) {
    const float g = widen(gate[i]), d = widen(dy[i]);
    const float s = sigmoid(g);
    narrow(d * widen(up[i]) * s * (1.0F + g * (1.0F - s)), dgate[i]);
    narrow(d * g * s, dup[i]);
  }
}

template <class T>
void rope(T* __restrict x, index_t heads, index_t half, const float* __restrict cosine,
          const float* __restrict sine, float sign) {
  for (index_t h = 0; h < heads; ++h) {
    T* first = x + h * 2 * half;
    T* second = first + half;
    T3D_INDEPENDENT
    for (index_t d = 0; d < half; ++d) {
      const float a = widen(first[d]), b = widen(second[d]);
      const float s = sign * sine[d];
      narrow(a * cosine[d] - b * s, first[d]);
      narrow(a * s + b * cosine[d], second[d]);
    }
  }
}

template <class T>
void scale(T* __restrict x, float factor, index_t n) {
  for (index_t i = 0; i < n; ++i) narrow(widen(x[i]) * factor, x[i]);
}

template <class From, class To>
void copy(const From* __restrict from, To* __restrict to, index_t n) {
  for (index_t i = 0; i < n; ++i) narrow(widen(from[i]), to[i]);
}

template <class From, class To>
void add(const From* __restrict a, To* __restrict b, index_t n) {
  for (index_t i = 0; i < n; ++i) narrow(widen(b[i]) + widen(a[i]), b[i]);
}

template <class T>
double sum(const T* x, index_t n) {
  double total = 0;
  for (index_t i = 0; i < n; ++i) total += static_cast<double>(widen(x[i]));
  return total;
}

constexpr index_t kRandomBlocks = 64;

// Philox 4x32-10 (core/random.hpp) for consecutive counters, one counter per vector lane.
inline void philox_words(std::uint64_t first, const DropoutRow& row,
                         std::uint32_t* __restrict out) {
  for (index_t i = 0; i < kRandomBlocks; ++i) {
    const std::uint64_t block = first + static_cast<std::uint64_t>(i);
    auto c0 = static_cast<std::uint32_t>(block), c1 = static_cast<std::uint32_t>(block >> 32);
    auto c2 = static_cast<std::uint32_t>(row.stream);
    auto c3 = static_cast<std::uint32_t>(row.stream >> 32);
    auto k0 = static_cast<std::uint32_t>(row.seed), k1 = static_cast<std::uint32_t>(row.seed >> 32);
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const std::uint64_t a = std::uint64_t{0xD2511F53U} * c0;
      const std::uint64_t b = std::uint64_t{0xCD9E8D57U} * c2;
      c0 = static_cast<std::uint32_t>(b >> 32) ^ c1 ^ k0;
      c2 = static_cast<std::uint32_t>(a >> 32) ^ c3 ^ k1;
      c1 = static_cast<std::uint32_t>(b);
      c3 = static_cast<std::uint32_t>(a);
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
    out[4 * i] = c0, out[4 * i + 1] = c1, out[4 * i + 2] = c2, out[4 * i + 3] = c3;
  }
}

template <class T>
void dropout(T* __restrict x, index_t n, const DropoutRow& row) {
  std::uint32_t words[4 * kRandomBlocks];
  for (index_t done = 0; done < n;) {
    const auto index = static_cast<std::uint64_t>(row.first + done);
    philox_words(index >> 2, row, words);
    const auto skip = static_cast<index_t>(index & 3U);
    const index_t left = n - done, room = 4 * kRandomBlocks - skip;
    const index_t count = left < room ? left : room;
    const std::uint32_t* bits = words + skip;
    T* to = x + done;
    for (index_t i = 0; i < count; ++i) {
      const auto value = static_cast<float>(static_cast<double>(widen(to[i])) * row.factor);
      narrow((bits[i] >> 8) >= row.threshold ? value : 0.0F, to[i]);
    }
    done += count;
  }
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
