// The table of this unit's kernels. Included by isa_*.cpp with T3D_ISA set to the unit's name.
#pragma once
#include "ops/cpu/isa/attention.hpp"
#include "ops/cpu/isa/decoding.hpp"
#include "ops/cpu/isa/elementwise.hpp"
#include "ops/cpu/isa/rows.hpp"

namespace t3d::cpu::T3D_ISA {
namespace {

template <class T>
constexpr KernelsFor<T> table_for() {
  KernelsFor<T> k{};
  k.gelu = gelu<T>;
  k.gelu_backward = gelu_backward<T>;
  k.swiglu = swiglu<T>;
  k.swiglu_backward = swiglu_backward<T>;
  k.norm_stats = norm_stats<T>;
  k.norm_apply = norm_apply<T>;
  k.norm_backward_stats = norm_backward_stats<T>;
  k.norm_backward_apply = norm_backward_apply<T>;
  k.xent_stats = xent_stats<T>;
  k.xent_grad = xent_grad<T>;
  k.rope = rope<T>;
  k.scale = scale<T>;
  k.add_to_float = add<T, float>;
  k.dropout = dropout<T>;
  k.sum = sum<T>;
  k.attention_forward = attention_forward<T>;
  k.attention_backward = attention_backward<T>;
  k.dots = dots<T>;
  k.kept_attention = kept_attention<T>;
  return k;
}

constexpr Kernels table(const char* name, const UpdateKernels& update) {
  Kernels k{};
  k.isa = name;
  k.update = &update;
  k.f32 = table_for<float>();
  k.b16 = table_for<bf16>();
  k.copy_f32_bf16 = copy<float, bf16>;
  k.copy_bf16_f32 = copy<bf16, float>;
  k.add_f32_f32 = add<float, float>;
  k.add_bf16_bf16 = add<bf16, bf16>;
  k.add_f32_bf16 = add<float, bf16>;
  k.add_bf16_f32 = add<bf16, float>;
  k.attention_workspace = attention_workspace;
  return k;
}

}  // namespace
}  // namespace t3d::cpu::T3D_ISA
