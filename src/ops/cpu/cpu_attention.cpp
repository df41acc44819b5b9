// Shares heads out over threads; the kernels do one head (forward) or one group of query heads that
// has a common key-value head (backward, so that its gradient is summed in one order).
#include <cmath>

#include "ops/cpu/cpu_ops.hpp"

namespace t3d {
namespace {

struct AttentionScratch;

template <class T>
cpu::AttentionHead<T> head_of(const AttentionArgs& args, const ConstTensorView& out,
                              const ConstTensorView& lse, index_t sequence, index_t head) {
  const index_t size = args.head_size, row = sequence * args.length;
  const index_t kv = head / (args.heads / args.kv_heads);
  const T* qkv = cpu::row_of<T>(args.qkv, row);
  return {args.length,
          size,
          args.causal,
          qkv + head * size,
          qkv + (args.heads + kv) * size,
          qkv + (args.heads + args.kv_heads + kv) * size,
          args.qkv.ld,
          const_cast<T*>(cpu::row_of<T>(out, row)) + head * size,  // NOLINT: read in the backward
          out.ld,
          const_cast<float*>(cpu::row_of<float>(lse, row)) + head,  // NOLINT
          lse.ld};
}

bool nothing_to_do(const AttentionArgs& args) {
  return args.sequences == 0 || args.length == 0 || args.heads == 0 || args.head_size == 0;
}

}  // namespace

void CpuOps::attention_forward(Queue& queue, const AttentionArgs& args, TensorView out,
                               TensorView lse) {
  if (nothing_to_do(args)) return;
  const index_t floats = cpu::kernels().attention_workspace(args.length, args.head_size);
  cpu::visit_activation(args.qkv.dtype, [&]<class T>(T) {
    for_tasks(queue, args.sequences * args.heads, [&](index_t task) {
      const auto head = head_of<T>(args, out, lse, task / args.heads, task % args.heads);
      cpu::kernels_for<T>().attention_forward(head, cpu::scratch<AttentionScratch>(floats));
    });
  });
}

void CpuOps::attention_backward(Queue& queue, const AttentionArgs& args, ConstTensorView out,
                                ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  if (nothing_to_do(args)) return;
  const index_t floats = cpu::kernels().attention_workspace(args.length, args.head_size);
  const index_t group_heads = args.heads / args.kv_heads, size = args.head_size;
  cpu::visit_activation(args.qkv.dtype, [&]<class T>(T) {
    for_tasks(queue, args.sequences * args.kv_heads, [&](index_t task) {
      const index_t sequence = task / args.kv_heads, kv = task % args.kv_heads;
      const index_t first = kv * group_heads, row = sequence * args.length;
      T* grad = cpu::row_of<T>(dqkv, row);
      const cpu::AttentionGroup<T> group{head_of<T>(args, out, lse, sequence, first),
                                         group_heads,
                                         cpu::row_of<T>(dout, row) + first * size,
                                         dout.ld,
                                         grad + first * size,
                                         grad + (args.heads + kv) * size,
                                         grad + (args.heads + args.kv_heads + kv) * size,
                                         dqkv.ld};
      cpu::kernels_for<T>().attention_backward(group, cpu::scratch<AttentionScratch>(floats));
    });
  });
}

void CpuOps::rope(Queue& queue, const RopeArgs& args) {
  const auto* positions = args.positions.as<std::int32_t>();
  const index_t half = args.head_size / 2;
  const index_t rows =
      positions != nullptr ? args.heads.rows : std::min(args.length, args.heads.rows);
  if (args.heads.empty() || half == 0) return;
  const double amplitude = args.frequencies.amplitude;
  std::vector<float> cosine(static_cast<std::size_t>(rows * half)), sine(cosine.size());
  cpu::parallel_rows(threads_, rows, 16, [&](index_t first, index_t last) {
    for (index_t d = 0; d < half; ++d) {
      const auto pair = static_cast<double>(d);
      const double plain = std::exp2(pair * args.frequencies.log2_step);
      const double frequency = args.frequencies.scaled(plain, pair);
      for (index_t r = first; r < last; ++r) {
        const double turn =
            static_cast<double>(positions != nullptr ? positions[r] : r) * frequency;
        cosine[static_cast<std::size_t>(r * half + d)] =
            static_cast<float>(amplitude * std::cos(turn));
        sine[static_cast<std::size_t>(r * half + d)] =
            static_cast<float>(amplitude * std::sin(turn));
      }
    }
  });
  const float sign = args.inverse ? -1.0F : 1.0F;
  cpu::visit_activation(args.heads.dtype, [&]<class T>(T) {
    const index_t bytes = args.heads.cols * size_of(args.heads.dtype);
    for_rows(queue, args.heads.rows, bytes, [&](index_t first, index_t last) {
      for (index_t r = first; r < last; ++r) {
        const index_t at = (positions != nullptr ? r : r % args.length) * half;
        cpu::kernels_for<T>().rope(cpu::row_of<T>(args.heads, r), args.heads.cols / args.head_size,
                                   half, cosine.data() + at, sine.data() + at, sign);
      }
    });
  });
}

}  // namespace t3d
