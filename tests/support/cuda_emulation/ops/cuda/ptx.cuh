// The emulation's version of src/ops/cuda/ptx.cuh: the same functions over gathered lanes, with the
// fragment layouts that are written there.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

namespace t3d::cuda::ptx {

template <class T>
T* shared_memory() {
  return reinterpret_cast<T*>(emulation::dynamic_shared());
}

inline void must_align(const void* pointer, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(pointer) % bytes != 0)
    emulation::fail("an address is not aligned to " + std::to_string(bytes) + " bytes");
}

template <std::size_t matrices>
void load_matrices(std::uint32_t (&r)[matrices], const void* row, bool transposed) {
  const unsigned lane = emulation::place().lane;
  std::byte bytes[16] = {};
  if (lane < 8 * matrices) {
    must_align(row, 16);
    std::memcpy(bytes, row, 16);
  }
  const auto& all = emulation::gather(0xffffffffU, bytes, 16);
  const auto element = [&](unsigned matrix, unsigned at_row, unsigned col) {
    std::uint16_t value;
    std::memcpy(&value, all.lane[8 * matrix + at_row].data() + 2 * col, 2);
    return value;
  };
  const unsigned g = lane / 4, t = lane % 4;
  for (unsigned m = 0; m < matrices; ++m) {
    const std::uint32_t low = transposed ? element(m, 2 * t, g) : element(m, g, 2 * t);
    const std::uint32_t high = transposed ? element(m, 2 * t + 1, g) : element(m, g, 2 * t + 1);
    r[m] = low | high << 16;
  }
}
inline void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) { load_matrices(r, row, false); }
inline void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row) {
  load_matrices(r, row, true);
}
inline void ldmatrix_x2(std::uint32_t (&r)[2], const void* row) { load_matrices(r, row, false); }
inline void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row) {
  load_matrices(r, row, true);
}

/// What a lane brings to a product.
struct MmaOperands {
  std::uint32_t a[4], b[2];
};
inline const MmaOperands& operands_of(const emulation::Gathered& all, unsigned lane) {
  return *reinterpret_cast<const MmaOperands*>(all.lane[lane].data());
}

/// scratch = a[16][depth], then b[depth][8], as floats. Run once, by the last lane to arrive.
template <class T>
void unpack_halves(emulation::Gathered& all) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const MmaOperands& own = operands_of(all, lane);
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned half = 0; half < 2; ++half) {
      const auto number = [&](std::uint32_t word) {
        T value;
        value.bits = static_cast<std::uint16_t>(word >> (16 * half));
        return static_cast<float>(value);
      };
      for (unsigned reg = 0; reg < 4; ++reg)
        all.scratch[(g + 8 * (reg % 2)) * 16 + 2 * t + half + 8 * (reg / 2)] = number(own.a[reg]);
      for (unsigned reg = 0; reg < 2; ++reg)
        all.scratch[256 + (2 * t + half + 8 * reg) * 8 + g] = number(own.b[reg]);
    }
  }
}
inline void unpack_tf32(emulation::Gathered& all) {
  const auto number = [](std::uint32_t word) { return std::bit_cast<float>(word & 0xffffe000U); };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const MmaOperands& own = operands_of(all, lane);
    const unsigned g = lane / 4, t = lane % 4;
    for (unsigned reg = 0; reg < 4; ++reg)
      all.scratch[(g + 8 * (reg % 2)) * 8 + t + 4 * (reg / 2)] = number(own.a[reg]);
    for (unsigned reg = 0; reg < 2; ++reg)
      all.scratch[256 + (t + 4 * reg) * 8 + g] = number(own.b[reg]);
  }
}

inline void multiply(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                     unsigned depth, emulation::Finish unpack) {
  MmaOperands own;
  std::memcpy(own.a, a, sizeof a);
  std::memcpy(own.b, b, sizeof b);
  const auto& all = emulation::gather(0xffffffffU, &own, sizeof own, unpack);
  const unsigned g = emulation::place().lane / 4, t = emulation::place().lane % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = g + 8 * (i / 2), col = 2 * t + i % 2;
    float sum = 0;
    for (unsigned k = 0; k < depth; ++k)
      sum += all.scratch[row * depth + k] * all.scratch[256 + k * 8 + col];
    d[i] += sum;
  }
}
template <class T>
void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  multiply(d, a, b, 16, unpack_halves<T>);
}
inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4],
                             const std::uint32_t (&b)[2]) {
  multiply(d, a, b, 8, unpack_tf32);
}

// What is read is read now (a GPU may read as late as the wait: the source must not change in
// between); it lands at the last moment that is allowed.
inline void copy_async(void* shared, const void* global, int bytes, int valid_bytes) {
  must_align(shared, static_cast<std::size_t>(bytes));
  must_align(global, static_cast<std::size_t>(bytes));
  if (valid_bytes < 0 || valid_bytes > bytes) emulation::fail("cp.async of a negative size");
  emulation::AsyncCopy copy{shared, {}, bytes};
  if (valid_bytes > 0) std::memcpy(copy.data.data(), global, static_cast<std::size_t>(valid_bytes));
  emulation::async_copies().open.push_back(copy);
}
inline void cp_async_16(void* shared, const void* global, int valid_bytes = 16) {
  copy_async(shared, global, 16, valid_bytes);
}
inline void cp_async_4(void* shared, const void* global, int valid_bytes = 4) {
  copy_async(shared, global, 4, valid_bytes);
}
inline void cp_async_commit() {
  auto& copies = emulation::async_copies();
  copies.groups.push_back(std::move(copies.open));
  copies.open.clear();
}
template <int pending>
void cp_async_wait() {
  emulation::async_copies().wait(pending);
}

}  // namespace t3d::cuda::ptx
