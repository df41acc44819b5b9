#include "hetero/speed/probe_numbers.hpp"

#include <algorithm>

namespace t3d {

Tensor probe_numbers(const ProbeMachine& machine, DType type, index_t rows, index_t cols) {
  constexpr index_t kDrawn = index_t{1} << 12;
  constexpr double kStd = 0.5;
  Tensor tensor(machine.device, type, rows, cols, MemoryKind::workspace);
  const TensorView all = tensor.view().flat();
  index_t filled = std::min(kDrawn, all.cols);
  machine.ops.random_init(machine.queue, all.col_range(0, filled), {1, stream_of("probe")}, 0, 0,
                          filled, kStd);
  for (; filled < all.cols; filled *= 2) {  // drawing all would cost more than the measurement
    const index_t more = std::min(filled, all.cols - filled);
    machine.ops.copy(machine.queue, all.col_range(0, more), all.col_range(filled, more));
  }
  return tensor;
}

Tensor probe_ids(const ProbeMachine& machine, index_t count, index_t vocab) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::size_t at = 0; at < ids.size(); ++at)
    ids[at] =
        static_cast<std::int32_t>(random_bits({1, stream_of("probe")}, static_cast<index_t>(at)) %
                                  static_cast<std::uint32_t>(vocab));
  Tensor tensor(machine.device, DType::i32, 1, count, MemoryKind::workspace);
  machine.device.copy(tensor.view().data, ids.data(), tensor.view().bytes(), machine.queue);
  machine.queue.synchronize();
  return tensor;
}

AdamWArgs probe_adamw(TensorView weight, TensorView m, TensorView v, ConstTensorView gradient) {
  AdamWArgs args;
  args.weight = weight;
  args.m = m;
  args.v = v;
  args.grad = gradient;
  args.lr = 1e-9;
  args.beta1 = 0.9;
  args.beta2 = 0.95;
  args.eps = 1e-8;
  return args;
}

}  // namespace t3d
