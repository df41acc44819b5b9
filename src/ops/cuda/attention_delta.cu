// What the backward pass needs to know of each query beside its rows: lse, and delta = sum over the
// head of dout * out, which a softmax's derivative subtracts everywhere (Dao 2023, section 3.1).
// One small kernel reads out and dout once; both backward passes then read 8 bytes per query, which
// lie in one piece per head.
//
// Eight lanes per row and head, neighbours along the row: 16-byte loads where the matrices allow
// it.
#include "ops/cuda/attention_problem.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {
namespace {

constexpr int kThreads = 256, kLanes = 8, kItems = kThreads / kLanes;

struct StatsTask {
  const float* lse;
  index_t lse_ld;
  QueryStats* stats;
  index_t rows;
  int length, heads, size, pitch;
};

template <class T, int kWidth>
__global__ void __launch_bounds__(kThreads)
    query_stats(Heads<const T> out, Heads<const T> dout, const StatsTask task) {
  const index_t item =
      static_cast<index_t>(blockIdx.x) * kItems + static_cast<int>(threadIdx.x) / kLanes;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const bool there = item < task.rows * task.heads;  // all lanes meet in the sum below
  const index_t row = there ? item / task.heads : 0;
  const int head = there ? static_cast<int>(item % task.heads) : 0;
  float sum = 0;
  if (there) {
    const T* a = out.at(row, head, task.size);
    const T* b = dout.at(row, head, task.size);
    for (int c = lane * kWidth; c < task.size; c += kLanes * kWidth) {
      const auto x = *reinterpret_cast<const Pack<T, kWidth>*>(a + c);
      const auto y = *reinterpret_cast<const Pack<T, kWidth>*>(b + c);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum += to_float(x.value[i]) * to_float(y.value[i]);
    }
  }
#pragma unroll
  for (int distance = kLanes / 2; distance > 0; distance /= 2)
    sum += __shfl_xor_sync(kAllLanes, sum, distance);
  if (!there || lane != 0) return;
  const index_t sequence = row / task.length;
  QueryStats& to = task.stats[(sequence * task.heads + head) * task.pitch + row % task.length];
  to.lse = task.lse[row * task.lse_ld + head] * kLog2E;
  to.delta = sum;
}

}  // namespace

Tensor attention_stats(Queue& queue, Device& device, const AttentionArgs& args, ConstTensorView out,
                       ConstTensorView lse, ConstTensorView dout) {
  const index_t pitch = (args.length + 1) / 2 * 2;
  Tensor stats(device, DType::f32, args.sequences * args.heads, 2 * pitch, MemoryKind::workspace);
  const StatsTask task{lse.as<float>(),
                       lse.ld,
                       static_cast<QueryStats*>(stats.view().data),
                       out.rows,
                       static_cast<int>(args.length),
                       static_cast<int>(args.heads),
                       static_cast<int>(args.head_size),
                       static_cast<int>(pitch)};
  LaunchShape shape;
  shape.threads = kThreads;
  shape.blocks_x = blocks_for(out.rows * args.heads, kItems);
  visit_activation(out.dtype, [&]<class T>(T) {
    const Heads<const T> a{out.as<T>(), out.ld}, b{dout.as<T>(), dout.ld};
    if (aligned_16(out) && aligned_16(dout) && args.head_size % kPack<T> == 0)
      launch(queue, shape, query_stats<T, kPack<T>>, a, b, task);
    else
      launch(queue, shape, query_stats<T, 1>, a, b, task);
  });
  return stats;
}

}  // namespace t3d::cuda
