// What the softmax's derivative subtracts from every column: delta = sum over a head of dout * out
// (Dao 2023, section 3.1). One warp per row and head; reads two rows, writes one number.
#include "ops/cuda/attention_problem.cuh"
#include "ops/cuda/reduce.cuh"

namespace t3d::cuda {
namespace {

constexpr int kWarps = 8;

template <class T>
__global__ void __launch_bounds__(kWarps* kWarp)
    sum_products(Heads<const T> out, Heads<const T> dout, float* delta, index_t rows, int heads,
                 int size) {
  const index_t item = static_cast<index_t>(blockIdx.x) * kWarps + threadIdx.x / kWarp;
  if (item >= rows * heads) return;  // a whole warp
  const index_t row = item / heads;
  const int head = static_cast<int>(item % heads), lane = static_cast<int>(threadIdx.x) % kWarp;
  const T* a = out.at(row, head, size);
  const T* b = dout.at(row, head, size);
  float sum = 0;
  for (int c = lane; c < size; c += kWarp) sum += to_float(a[c]) * to_float(b[c]);
  sum = warp_sum(sum);
  if (lane == 0) delta[item] = sum;
}

}  // namespace

Tensor attention_delta(Queue& queue, Device& device, const AttentionArgs& args, ConstTensorView out,
                       ConstTensorView dout) {
  Tensor delta(device, DType::f32, out.rows, args.heads, MemoryKind::workspace);
  visit_activation(out.dtype, [&]<class T>(T) {
    const Heads<const T> a{out.as<T>(), out.ld}, b{dout.as<T>(), dout.ld};
    LaunchShape shape;
    shape.threads = kWarps * kWarp;
    shape.blocks_x = blocks_for(out.rows * args.heads, kWarps);
    launch(queue, shape, sum_products<T>, a, b, delta.view().as<float>(), out.rows,
           static_cast<int>(args.heads), static_cast<int>(args.head_size));
  });
  return delta;
}

}  // namespace t3d::cuda
