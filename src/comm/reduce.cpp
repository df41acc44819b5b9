#include "comm/reduce.hpp"

#include <algorithm>
#include <array>

namespace t3d {
namespace {

// Sums of a block stay in the first-level cache while the sources stream through.
constexpr index_t kBlock = 1024;

// Signed overflow is undefined; the sum of counters and hashes must wrap the same way everywhere.
std::int32_t add(std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
}
float add(float a, float b) { return a + b; }
double add(double a, double b) { return a + b; }

struct Sum {
  template <class T>
  T operator()(T a, T b) const {
    return add(a, b);
  }
};
struct Max {  // a NaN anywhere gives NaN
  template <class T>
  T operator()(T a, T b) const {
    return a < b || b != b ? b : a;  // NOLINT: b != b is the NaN
  }
};
struct BitOr {
  std::int32_t operator()(std::int32_t a, std::int32_t b) const { return a | b; }
};

template <class From, class Acc, class To, class Op>
void reduce_as(Op op, std::span<const void* const> sources, void* to, index_t count) {
  std::array<Acc, kBlock> sum;
  for (index_t begin = 0; begin < count; begin += kBlock) {
    const index_t n = std::min(kBlock, count - begin);
    const From* first = static_cast<const From*>(sources[0]) + begin;
    Acc* const out = sum.data();
    for (index_t e = 0; e < n; ++e) out[e] = static_cast<Acc>(first[e]);
    for (const void* source : sources.subspan(1)) {
      const From* next = static_cast<const From*>(source) + begin;
      for (index_t e = 0; e < n; ++e) out[e] = op(out[e], static_cast<Acc>(next[e]));
    }
    To* const result = static_cast<To*>(to) + begin;
    for (index_t e = 0; e < n; ++e) result[e] = static_cast<To>(out[e]);
  }
}

template <class Op>
void reduce_numbers(Op op, DType type, std::span<const void* const> sources, void* to,
                    index_t count) {
  switch (type) {
    case DType::f64: return reduce_as<double, double, double>(op, sources, to, count);
    case DType::f32: return reduce_as<float, float, float>(op, sources, to, count);
    case DType::i32:
      return reduce_as<std::int32_t, std::int32_t, std::int32_t>(op, sources, to, count);
    case DType::bf16: return reduce_as<bf16, float, bf16>(op, sources, to, count);
    case DType::f16: return reduce_as<f16, float, f16>(op, sources, to, count);
  }
}

}  // namespace

void check_reducible(ReduceOp op, DType type, DType to_type) {
  const bool widens = is_half(type) && to_type == DType::f32;
  const bool narrows = type == DType::f32 && is_half(to_type);
  T3D_CHECK(to_type == type || widens || narrows, "a reduction of {} into {}", name_of(type),
            name_of(to_type));
  T3D_CHECK(op == ReduceOp::sum || (op == ReduceOp::max && !is_half(type)) || type == DType::i32,
            "this reduction is not defined for {}", name_of(type));
}

void reduce(ReduceOp op, DType type, std::span<const void* const> sources, DType to_type, void* to,
            index_t count) {
  if (op == ReduceOp::bit_or)
    reduce_as<std::int32_t, std::int32_t, std::int32_t>(BitOr(), sources, to, count);
  else if (op == ReduceOp::max)
    reduce_numbers(Max(), type, sources, to, count);
  else if (to_type == DType::f32 && type == DType::bf16)
    reduce_as<bf16, float, float>(Sum(), sources, to, count);
  else if (to_type == DType::bf16 && type == DType::f32)
    reduce_as<float, float, bf16>(Sum(), sources, to, count);
  else if (to_type == DType::f32 && type == DType::f16)
    reduce_as<f16, float, float>(Sum(), sources, to, count);
  else if (to_type == DType::f16 && type == DType::f32)
    reduce_as<float, float, f16>(Sum(), sources, to, count);
  else
    reduce_numbers(Sum(), type, sources, to, count);
}

}  // namespace t3d
