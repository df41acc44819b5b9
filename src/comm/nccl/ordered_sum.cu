// Sums of the pieces of all ranks, in a fixed order, for ordered reductions: reads n pieces and
// writes one, each byte once. Not measured.
//
//   width 16 bytes  a thread owns 16 bytes of every piece: whole transactions, and four pieces'
//                   loads in flight before the first addition; the order of the additions does not
//                   depend on any of it
//   width 1         where an address or a rest does not allow that; the same source
#include "comm/cost.hpp"
#include "comm/nccl/ordered_sum.hpp"
#include "device/cuda/launch.cuh"
#include "device/cuda/numbers.cuh"

namespace t3d::nccl {
namespace {

using cuda::Bf16;
using cuda::F16;
using cuda::Pack;

constexpr int kThreads = 256;
constexpr int kAhead = 4;  // pieces loaded before they are added

struct Sum {
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
  __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
  __device__ __forceinline__ std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
  }
};
struct Max {  // a NaN anywhere gives NaN
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a < b || b != b ? b : a;  // NOLINT: b != b is the NaN
  }
};
struct BitOr {
  __device__ __forceinline__ std::int32_t operator()(std::int32_t a, std::int32_t b) const {
    return a | b;
  }
};

// 16-bit numbers are added as fp32, the others as they are.
template <class T>
__device__ __forceinline__ T widened(T x) {
  return x;
}
__device__ __forceinline__ float widened(Bf16 x) { return cuda::to_float(x); }
__device__ __forceinline__ float widened(F16 x) { return cuda::to_float(x); }

template <class To, class Acc>
__device__ __forceinline__ To rounded(Acc x) {
  if constexpr (std::is_same_v<To, Acc>)
    return x;
  else
    return cuda::from_float<To>(x);
}

template <class From>
struct TypedPieces {
  const From* own;
  const From* others;
  index_t stride;
  int rank, ranks;
  __device__ __forceinline__ const From* at(int r) const {
    return r == rank ? own : others + (r < rank ? r : r - 1) * stride;
  }
};

template <int width, class From, class To, class Op>
__global__ void __launch_bounds__(kThreads)
    reduce_kernel(TypedPieces<From> pieces, To* to, index_t packs, Op op) {
  const index_t pack = static_cast<index_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (pack >= packs) return;
  using Source = Pack<From, width>;
  using Acc = decltype(widened(From{}));
  const auto load = [&](int r) {
    return *reinterpret_cast<const Source*>(pieces.at(r) + pack * width);
  };
  const Source first = load(0);
  Acc sum[static_cast<std::size_t>(width)];
#pragma unroll
  for (int e = 0; e < width; ++e) sum[e] = widened(first.value[e]);

  int r = 1;
  for (; r + kAhead <= pieces.ranks; r += kAhead) {
    Source next[kAhead];
#pragma unroll
    for (int s = 0; s < kAhead; ++s) next[s] = load(r + s);
#pragma unroll
    for (int s = 0; s < kAhead; ++s)
#pragma unroll
      for (int e = 0; e < width; ++e) sum[e] = op(sum[e], widened(next[s].value[e]));
  }
  for (; r < pieces.ranks; ++r) {
    const Source next = load(r);
#pragma unroll
    for (int e = 0; e < width; ++e) sum[e] = op(sum[e], widened(next.value[e]));
  }

  Pack<To, width> result;
#pragma unroll
  for (int e = 0; e < width; ++e) result.value[e] = rounded<To>(sum[e]);
  *reinterpret_cast<Pack<To, width>*>(to + pack * width) = result;
}

// Log2 of the most ranks that a tree has leaves for.
constexpr int kLevels = 31;
constexpr int kTreeThreads = 64;

// One thread per number. Leaf after leaf joins the partial results of the levels below it, as a
// carry goes through the bits of a counter.
template <class T, class Op>
__global__ void __launch_bounds__(kTreeThreads)
    tree_kernel(const T* rows, T* to, int ranks, int leaves, index_t count, Op op) {
  using Acc = decltype(widened(T{}));
  __shared__ Acc partial_of[kLevels][kTreeThreads];  // each thread its own column
  const index_t at = static_cast<index_t>(blockIdx.x) * kTreeThreads + threadIdx.x;
  if (at >= count) return;
  const auto value = [&](int rank) { return widened(rows[rank * count + at]); };
  const auto partial = [&](int level) -> Acc& { return partial_of[level][threadIdx.x]; };
  Acc sum{};
  for (int leaf = 0; leaf < leaves; ++leaf) {
    sum = value(leaf);
    if (leaves + leaf < ranks) sum = op(sum, value(leaves + leaf));
    int level = 0;
    for (; (leaf >> level & 1) != 0; ++level) sum = op(partial(level), sum);
    partial(level) = sum;
  }
  to[at] = rounded<T>(sum);
}

template <class T, class Op>
void run_tree(Queue& queue, ConstTensorView rows, TensorView to, Op op) {
  cuda::LaunchShape shape;
  shape.blocks_x = cuda::blocks_for(rows.cols, kTreeThreads);
  shape.threads = kTreeThreads;
  const int ranks = static_cast<int>(rows.rows);
  cuda::launch(queue, shape, tree_kernel<T, Op>, static_cast<const T*>(rows.data),
               static_cast<T*>(to.data), ranks, doubling_ranks(ranks), rows.cols, op);
}

template <int width, class From, class To, class Op>
void run(Queue& queue, const TypedPieces<From>& pieces, To* to, index_t packs, Op op) {
  cuda::LaunchShape shape;
  shape.blocks_x = cuda::blocks_for(packs, kThreads);
  shape.threads = kThreads;
  cuda::launch(queue, shape, reduce_kernel<width, From, To, Op>, pieces, to, packs, op);
}

template <class T, int width>
bool aligned(const T* data) {
  return reinterpret_cast<std::uintptr_t>(data) % sizeof(Pack<T, width>) == 0;
}

template <class From, class To, class Op>
void reduce_as(Queue& queue, Op op, const Pieces& pieces, void* to, index_t count) {
  TypedPieces<From> from{static_cast<const From*>(pieces.own),
                         static_cast<const From*>(pieces.others), pieces.stride, pieces.rank,
                         pieces.ranks};
  auto* out = static_cast<To*>(to);
  constexpr int kWidth = cuda::kPack<From>;
  const bool wide = aligned<From, kWidth>(from.own) && aligned<From, kWidth>(from.others) &&
                    pieces.stride % kWidth == 0 && aligned<To, kWidth>(out);
  const index_t packs = wide ? count / kWidth : 0;
  run<kWidth>(queue, from, out, packs, op);
  const index_t done = packs * kWidth;
  from.own += done;
  from.others += done;
  run<1>(queue, from, out + done, count - done, op);
}

template <class From>
void sum_of(Queue& queue, const Pieces& pieces, DType to_type, void* to, index_t count) {
  if constexpr (std::is_same_v<From, float>) {
    if (to_type == DType::bf16) return reduce_as<From, Bf16>(queue, Sum(), pieces, to, count);
    if (to_type == DType::f16) return reduce_as<From, F16>(queue, Sum(), pieces, to, count);
  } else if constexpr (sizeof(From) == 2) {
    if (to_type == DType::f32) return reduce_as<From, float>(queue, Sum(), pieces, to, count);
  }
  reduce_as<From, From>(queue, Sum(), pieces, to, count);
}

/// Calls `body(number of the type, op)` for the sum, the maximum or the bit-or, where it is
/// defined.
template <class Body>
void visit_reduction(ReduceOp op, DType type, const Body& body) {
  cuda::visit_any(type, [&](auto number) {
    using From = decltype(number);
    if (op == ReduceOp::sum) return body(number, Sum());
    if constexpr (sizeof(From) > 2) {
      if (op == ReduceOp::max) return body(number, Max());
    }
    if constexpr (std::is_same_v<From, std::int32_t>) {
      if (op == ReduceOp::bit_or) return body(number, BitOr());
    }
    throw_error(ExitCode::internal, "this reduction is not defined for {}", name_of(type));
  });
}

}  // namespace

void ordered_reduce(Queue& queue, ReduceOp op, DType type, const Pieces& pieces, DType to_type,
                    void* to, index_t count) {
  visit_reduction(op, type, [&](auto number, auto reduction) {
    using From = decltype(number);
    if constexpr (std::is_same_v<decltype(reduction), Sum>)
      sum_of<From>(queue, pieces, to_type, to, count);
    else
      reduce_as<From, From>(queue, reduction, pieces, to, count);
  });
}

void tree_reduce(Queue& queue, ReduceOp op, DType type, ConstTensorView rows, TensorView to) {
  visit_reduction(op, type, [&](auto number, auto reduction) {
    run_tree<decltype(number)>(queue, rows, to, reduction);
  });
}

}  // namespace t3d::nccl
