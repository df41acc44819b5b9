// Rotary position embedding in place: each head's pairs (d, d + D/2) turn by position *
// frequency(d) (core/rope.hpp). A thread owns a pack of neighbouring pairs of one row and rotates
// it in up to eight heads, so that the angles are made once for all of them; the heads' packs are
// loaded four at a time. The angle in turns is made and reduced in fp64 (positions may be large),
// its sine and cosine in fp32 by short series: library functions carry a slow path for large
// arguments that needs local memory. Bytes per element 2s, s the size of T. Speed not measured.
#include <cmath>
#include <numbers>

#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/elements.cuh"

namespace t3d::cuda {
namespace {

constexpr int kHeadsPerThread = 8, kHeadsInFlight = 4;

struct Rotation {
  float cosine, sine;
};

/// Of 2 pi turns: the nearest quarter turn is taken off exactly, the rest is at most pi/4.
__device__ __forceinline__ Rotation rotation_of(double turns) {
  const double quarters = rint(4.0 * turns);
  const auto a = static_cast<float>((4.0 * turns - quarters) * (std::numbers::pi / 2));
  const float t = a * a;
  const float s =
      a + a * t * (-1.0F / 6 + t * (1.0F / 120 + t * (-1.0F / 5040 + t * (1.0F / 362880))));
  const float c = 1.0F + t * (-0.5F + t * (1.0F / 24 + t * (-1.0F / 720 + t * (1.0F / 40320))));
  const auto quadrant = static_cast<int>(static_cast<long long>(quarters) & 3);
  const bool swap = (quadrant & 1) != 0;
  const float first = swap ? s : c, second = swap ? c : s;
  return {quadrant == 1 || quadrant == 2 ? -first : first, quadrant >= 2 ? -second : second};
}

template <class T>
struct RopeShape {
  Matrix<T> x;
  index_t rows, length;
  int heads, half;  // half the size of a head
  RopeFrequencies frequencies;
  double sign;                    // turn of pair d at position p: sign p frequency(d)
  const std::int32_t* positions;  // of rows; null = row % length
};

template <int N, class T>
__device__ __forceinline__ void rotate_heads(const RopeShape<T>& a, index_t row, int d, int first,
                                             int last) {
  const index_t place = a.positions != nullptr ? a.positions[row] : row % a.length;
  const auto position = static_cast<double>(place) * a.sign;
  const auto amplitude = static_cast<float>(a.frequencies.amplitude);
  Rotation turn[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const auto pair = static_cast<double>(d + i);
    const double frequency = a.frequencies.scaled(exp2(pair * a.frequencies.log2_step), pair);
    turn[i] = rotation_of(position * frequency * (0.5 * std::numbers::inv_pi));
    turn[i].cosine *= amplitude;
    turn[i].sine *= amplitude;
  }
  T* low = a.x.at(row, 0) + d;
  for (int head = first; head < last; head += kHeadsInFlight) {
    Elements<T, N> p[kHeadsInFlight], q[kHeadsInFlight];
#pragma unroll
    for (int h = 0; h < kHeadsInFlight; ++h) {
      if (head + h >= last) continue;
      p[h].load(low + 2 * a.half * (head + h));
      q[h].load(low + 2 * a.half * (head + h) + a.half);
    }
#pragma unroll
    for (int h = 0; h < kHeadsInFlight; ++h) {
      if (head + h >= last) continue;
      float low_out[N], high_out[N];
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float x = p[h][i], y = q[h][i];
        low_out[i] = x * turn[i].cosine - y * turn[i].sine;
        high_out[i] = x * turn[i].sine + y * turn[i].cosine;
      }
      p[h].assign(low_out);
      q[h].assign(high_out);
      p[h].store(low + 2 * a.half * (head + h));
      q[h].store(low + 2 * a.half * (head + h) + a.half);
    }
  }
}

/// N divides half the size of a head. blockIdx.y: groups of heads.
template <int N, class T>
__global__ void __launch_bounds__(kElementThreads) rotate(RopeShape<T> a) {
  const index_t thread = blockIdx.x * index_t{kElementThreads} + threadIdx.x;
  const int packs = a.half / N;
  const index_t row = thread / packs;
  if (row >= a.rows) return;
  const int d = static_cast<int>(thread - row * packs) * N;
  const int first = static_cast<int>(blockIdx.y) * kHeadsPerThread;
  rotate_heads<N>(a, row, d, first, min(first + kHeadsPerThread, a.heads));
}

}  // namespace

void CudaOps::rope(Queue& queue, const RopeArgs& args) {
  const TensorView& x = args.heads;
  if (x.empty() || args.head_size < 2) return;
  visit_activation(x.dtype, [&]<class T>(T) {
    const index_t half = args.head_size / 2;
    const RopeShape<T> shape{matrix_of<T>(x),
                             x.rows,
                             args.length,
                             static_cast<int>(x.cols / args.head_size),
                             static_cast<int>(half),
                             args.frequencies,
                             args.inverse ? -1.0 : 1.0,
                             args.positions.as<std::int32_t>()};
    constexpr int N = kPack<T>;
    const bool packs = half % N == 0 && fits_packs(x, N);
    LaunchShape launched;
    launched.threads = kElementThreads;
    launched.blocks_x = blocks_for(x.rows * (packs ? half / N : half), kElementThreads);
    launched.blocks_y = blocks_for(shape.heads, kHeadsPerThread);
    launch(queue, launched, packs ? rotate<N, T> : rotate<1, T>, shape);
  });
}

}  // namespace t3d::cuda
