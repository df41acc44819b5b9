// Dropout and initial values from counter-based random numbers (core/random.hpp), bit for bit those
// of the other back ends. Compiled with -fmad=false, as portable_math.hpp asks.
// - dropout: a pack's words come from two or, where the pack does not begin at a multiple of four
//   elements, three Philox blocks (eight words are 16 bytes of 16-bit numbers); one block per
//   element would make the kernel bound by integer products. Bytes per element 2s, s the size of T.
// - random_init: one number per thread and step; it runs once. Speed not measured.
#include <cmath>

#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {
namespace {

/// The random bits of elements [first, first + N).
template <int N>
__device__ __forceinline__ void words_from(const RandomKey& key, index_t first,
                                           std::uint32_t (&words)[N]) {
  constexpr int kBlocks = N < 4 ? 1 : N / 4;
  std::uint32_t all[4 * kBlocks + 4] = {};
  const auto at = static_cast<std::uint64_t>(first);
  const auto skip = static_cast<int>(at & 3U);
  const auto take = [&](int block) {
    const auto four = random_block(key, (at >> 2) + static_cast<unsigned>(block));
#pragma unroll
    for (int i = 0; i < 4; ++i) all[4 * block + i] = four[static_cast<std::size_t>(i)];
  };
#pragma unroll
  for (int block = 0; block < kBlocks; ++block) take(block);
  if (skip + N > 4 * kBlocks) take(kBlocks);
  // Moves by 1 and by 2 instead of an index, which would put the words into local memory.
  const bool by_one = (skip & 1) != 0, by_two = (skip & 2) != 0;
#pragma unroll
  for (int i = 0; i < N + 2; ++i) all[i] = by_one ? all[i + 1] : all[i];
#pragma unroll
  for (int i = 0; i < N; ++i) words[i] = by_two ? all[i + 2] : all[i];
}

template <class T>
struct Dropout {
  static constexpr int kWidth = kPack<T>, kItems = 2;
  Matrix<T> x;
  RandomKey key;
  index_t first,
      global_cols;            // global index of x's first element, and of elements below each other
  std::uint32_t threshold;    // kept iff 24 random bits >= threshold
  float factor, factor_rest;  // their sum is 1/(1-p) in 48 bits: the product rounds as fp64's does

  template <int N>
  struct Item {
    Elements<T, N> x;
  };
  template <int N>
  __device__ void load(Item<N>& item, index_t row, index_t col, int valid) const {
    item.x.load(x.at(row, col), valid);
  }
  template <int N>
  __device__ void finish(Item<N>& item, index_t row, index_t col, int valid) const {
    std::uint32_t words[N];
    words_from(key, first + row * global_cols + col, words);
    float out[N];
#pragma unroll
    for (int i = 0; i < N; ++i) {
      const float value = item.x[i];
      out[i] = (words[i] >> 8) >= threshold ? fmaf(value, factor, value * factor_rest) : 0.0F;
    }
    item.x.assign(out);
    item.x.store(x.at(row, col), valid);
  }
};

template <class T>
struct Normals {
  static constexpr int kWidth = 1, kItems = 1;
  Matrix<T> x;
  RandomKey key;
  index_t first, global_cols;
  double std;

  template <int N>
  struct Item {};
  template <int N>
  __device__ void load(Item<N>&, index_t, index_t, int) const {}
  template <int N>
  __device__ void finish(Item<N>&, index_t row, index_t col, int) const {
    const auto at = static_cast<std::uint64_t>(first + row * global_cols + col);
    const auto four = random_block(key, at >> 2);
    const bool upper = (at & 2U) != 0;
    const NormalPair pair = normal_pair(upper ? four[2] : four[0], upper ? four[3] : four[1]);
    const double normal = (at & 1U) != 0 ? pair.odd : pair.even;
    *x.at(row, col) = from_float<T>(static_cast<float>(std * normal));
  }
};

}  // namespace

void CudaOps::dropout(Queue& queue, const DropoutArgs& args) {
  const double factor = 1.0 / (1.0 - args.p);
  const auto high = static_cast<float>(factor);
  visit_activation(args.x.dtype, [&]<class T>(T) {
    const Dropout<T> op{matrix_of<T>(args.x),
                        args.key,
                        args.row0 * args.global_cols + args.col0,
                        args.global_cols,
                        static_cast<std::uint32_t>(std::ceil(args.p * 0x1p24)),
                        high,
                        static_cast<float>(factor - static_cast<double>(high))};
    for_each_element(queue, op, args.x.rows, args.x.cols, fits_packs(args.x, op.kWidth));
  });
}

void CudaOps::random_init(Queue& queue, TensorView x, const RandomKey& key, index_t row0,
                          index_t col0, index_t global_cols, double std) {
  visit_activation(x.dtype, [&]<class T>(T) {
    const Normals<T> op{matrix_of<T>(x), key, row0 * global_cols + col0, global_cols, std};
    for_each_element(queue, op, x.rows, x.cols, false);
  });
}

}  // namespace t3d::cuda
