// The table of this unit's exact kernels. Included by exact_*.cpp with T3D_ISA set to the name of
// the instruction set.
#pragma once
#include "ops/cpu/isa/aggregate.hpp"
#include "ops/cpu/isa/update.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

template <class T>
constexpr UpdateKernelsFor<T> update_table_for() {
  UpdateKernelsFor<T> k{};
  k.adamw = adamw<T>;
  k.adam_direction = adam_direction<T>;
  k.sgd = sgd<T>;
  k.sum_squares = sum_squares<T>;
  k.gram = gram<T>;
  k.combine_to_float = combine<T, float>;
  k.combine_to_bf16 = combine<T, bf16>;
  return k;
}

constexpr UpdateKernels update_table() {
  return {update_table_for<float>(), update_table_for<bf16>(), axpby, gram_workspace};
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
