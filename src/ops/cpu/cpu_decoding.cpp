// One new row of each of several sequences: matrix products that read the weights once, and
// attention to kept keys and values. A row is computed alone, so that a text does not depend on the
// others of its batch.
#include "ops/cpu/cpu_ops.hpp"

namespace t3d {
namespace {

struct WideRows;
struct KeptScratch;

/// The rows of `a` in fp32, contiguous.
ConstTensorView wide_rows(const ConstTensorView& a) {
  if (a.dtype == DType::f32) return a;
  const TensorView wide(cpu::scratch<WideRows>(a.count()), DType::f32, a.rows, a.cols);
  for (index_t r = 0; r < a.rows; ++r)
    cpu::kernels().copy_bf16_f32(cpu::row_of<bf16>(a, r), cpu::row_of<float>(wide, r), a.cols);
  return wide;
}

/// c[columns of row `row` from `first` on] (+)= sums + bias
void put_sums(const GemmArgs& args, index_t row, index_t first, index_t count, const float* sums) {
  const auto put = [&](auto* c) {
    for (index_t n = 0; n < count; ++n) {
      float value = sums[n];
      if (args.bias.data != nullptr) value += args.bias.as<float>()[first + n];
      if (args.accumulate) value += static_cast<float>(c[n]);
      c[n] = static_cast<std::remove_reference_t<decltype(c[n])>>(value);
    }
  };
  cpu::visit_activation(args.c.dtype,
                        [&]<class T>(T) { put(cpu::row_of<T>(args.c, row) + first); });
}

}  // namespace

void CpuOps::multiply_rows(Queue& queue, const GemmArgs& args) const {
  T3D_CHECK(!args.transpose_a && args.transpose_b && args.a.cols == args.b.cols &&
                args.a.rows == args.c.rows && args.b.rows == args.c.cols,
            "product by rows [{},{}] x [{},{}] -> [{},{}]", args.a.rows, args.a.cols, args.b.rows,
            args.b.cols, args.c.rows, args.c.cols);
  const ConstTensorView a = wide_rows(args.a);
  const index_t columns = args.c.cols, depth = a.cols;
  const index_t groups = (columns + cpu::kDots - 1) / cpu::kDots;
  cpu::visit_activation(args.b.dtype, [&]<class T>(T) {
    const index_t bytes = cpu::kDots * depth * size_of(args.b.dtype);
    for_rows(queue, groups, bytes, [&](index_t from, index_t to) {
      for (index_t first = from * cpu::kDots; first < std::min(columns, to * cpu::kDots);
           first += cpu::kDots) {
        const index_t count = std::min(cpu::kDots, columns - first);
        for (index_t row = 0; row < a.rows; ++row) {
          float sums[cpu::kDots];
          cpu::kernels_for<T>().dots(cpu::row_of<float>(a, row), cpu::row_of<T>(args.b, first),
                                     args.b.ld, depth, count, sums);
          put_sums(args, row, first, count, sums);
        }
      }
    });
  });
}

void CpuOps::kept_attention(Queue& queue, const KeptAttentionArgs& args, TensorView out) {
  if (out.empty()) return;
  const index_t group = args.heads / args.kv_heads, size = args.head_size;
  const auto* places = args.places.as<std::int32_t>();
  cpu::visit_activation(out.dtype, [&]<class T>(T) {
    for_tasks(queue, out.rows * args.kv_heads, [&](index_t task) {
      const index_t row = task / args.kv_heads, kv = task % args.kv_heads, place = places[row];
      T* to = cpu::row_of<T>(out, row) + kv * group * size;
      if (place < 0) return static_cast<void>(std::fill_n(to, group * size, T{}));
      const index_t first = place / args.capacity * args.capacity, count = place - first + 1;
      const cpu::KeptHeads<T> heads{group,
                                    size,
                                    count,
                                    cpu::row_of<T>(args.queries, row) + kv * group * size,
                                    cpu::row_of<T>(args.keys, first) + kv * size,
                                    cpu::row_of<T>(args.values, first) + kv * size,
                                    args.keys.ld,
                                    to};
      T3D_CHECK(args.keys.ld == args.values.ld, "keys and values lie alike");
      cpu::kernels_for<T>().kept_attention(heads, cpu::scratch<KeptScratch>(count + 2 * size));
    });
  });
}

}  // namespace t3d
