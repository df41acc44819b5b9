// Vectors of fp64, as wide as the instruction set has them.
#pragma once
#include "ops/cpu/isa/tile.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

constexpr int kWideLanes = kLanes / 2;
typedef double Wide __attribute__((vector_size(8 * kWideLanes)));

inline Wide load_wide(const double* from) {
  Wide v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

inline Wide load_widened(const float* from) {
  typedef float Half __attribute__((vector_size(4 * kWideLanes)));
  Half v;
  __builtin_memcpy(&v, from, sizeof v);
  return __builtin_convertvector(v, Wide);
}
inline Wide load_widened(const bf16* from) {
  Wide v;
  for (int lane = 0; lane < kWideLanes; ++lane) v[lane] = static_cast<double>(widen(from[lane]));
  return v;
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
