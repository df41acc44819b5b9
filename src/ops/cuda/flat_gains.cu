// Gains of weighted means from sums of squares: a thread per group, and one for the summary, whose
// sums have a fixed order. A few hundred numbers.
#include "ops/flat_gain.hpp"
#include "ops/adasum.hpp"
#include "ops/cuda/cuda_ops.hpp"
#include "ops/cuda/launch.cuh"

namespace t3d::cuda {
namespace {

constexpr int kThreads = 128;

struct FlatTask {
  const double *leaf_squares, *mean_squares, *weights;
  int groups, n;
  double square, exponent;
  double *gains, *summary;

  struct Group {
    double mean_square, gain;
    adasum::NoiseEstimate estimate;
  };
  [[nodiscard]] __device__ Group group(int g, const adasum::LeafWeights& sums) const {
    Group result{mean_squares[g] * square, 1, {}};
    if (sums.count < 2) return result;
    result.estimate =
        adasum::estimate_from_squares(leaf_squares[g] * square, result.mean_square, sums);
    result.gain = adasum::flat_gain(result.estimate, sums);
    return result;
  }
};

__global__ void __launch_bounds__(kThreads) gains_of_groups(const FlatTask task) {
  const int g = static_cast<int>(blockIdx.x) * kThreads + static_cast<int>(threadIdx.x);
  if (g >= task.groups) return;
  const auto sums = adasum::leaf_weights(task.weights, task.n);
  task.gains[g] = gain_power(task.group(g, sums).gain, task.exponent);
}

__global__ void summarise(const FlatTask task) {
  const auto sums = adasum::leaf_weights(task.weights, task.n);
  double squares = 0, signal = 0, noise = 0, gain = 0;
  for (int g = 0; g < task.groups; ++g) {
    const FlatTask::Group group = task.group(g, sums);
    squares += group.mean_square;
    signal += group.estimate.signal;
    noise += group.estimate.noise;
    gain += group.gain * group.mean_square;
  }
  task.summary[adasum_summary::mean_squares] = squares;
  task.summary[adasum_summary::signal] = signal;
  task.summary[adasum_summary::noise] = noise;
  task.summary[adasum_summary::gain] = squares > 0 ? gain / squares : 1.0;
  task.summary[adasum_summary::weights] = sums.total;
  for (int i = 0; i < task.n; ++i)
    task.summary[adasum_summary::columns + i] = task.weights[i] > 0 ? 1 : 0;
}

}  // namespace

void CudaOps::flat_gains(Queue& queue, const FlatGainArgs& args) {
  const FlatTask task{args.leaf_squares.as<double>(),
                      args.mean_squares.as<double>(),
                      args.weights.as<double>(),
                      static_cast<int>(args.gains.cols),
                      static_cast<int>(args.weights.cols),
                      args.unscale * args.unscale,
                      args.gain_exponent,
                      args.gains.as<double>(),
                      args.summary.as<double>()};
  LaunchShape shape;
  shape.threads = kThreads;
  shape.blocks_x = blocks_for(args.gains.cols, kThreads);
  if (task.groups > 0) launch(queue, shape, gains_of_groups, task);
  shape.threads = 1, shape.blocks_x = 1;
  launch(queue, shape, summarise, task);
}

}  // namespace t3d::cuda
