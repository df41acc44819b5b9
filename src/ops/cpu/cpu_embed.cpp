// Rows of a table by id; their gradient in the order of the rows, parallel over columns; initial
// values, four numbers from each block of random bits.
#include <array>

#include "ops/cpu/cpu_ops.hpp"

namespace t3d {
namespace {

constexpr index_t kScatterCols = 128;

// Standard normals of the global elements [4*block, 4*block + 4).
std::array<double, 4> normals_of_block(const RandomKey& key, std::uint64_t block) {
  const auto words = random_block(key, block);
  const NormalPair low = normal_pair(words[0], words[1]), high = normal_pair(words[2], words[3]);
  return {low.even, low.odd, high.even, high.odd};
}

template <class T>
void init_row(T* row, index_t n, const RandomKey& key, index_t index, double std) {
  for (index_t c = 0; c < n;) {
    const auto at = static_cast<std::uint64_t>(index + c);
    const auto normals = normals_of_block(key, at >> 2);
    for (std::size_t i = at & 3U; i < 4 && c < n; ++i, ++c)
      row[c] = static_cast<T>(std * normals[i]);
  }
}

}  // namespace

void CpuOps::embed_gather(Queue& queue, ConstTensorView ids, index_t row0, ConstTensorView table,
                          TensorView out) {
  for (index_t t = 0; t < out.rows; ++t) {
    const index_t row = ids.as<std::int32_t>()[t] - row0;
    const TensorView to = out.row_range(t, 1);
    if (row >= 0 && row < table.rows)
      copy(queue, table.row_range(row, 1), to);
    else
      fill(queue, to, 0.0);
  }
}

void CpuOps::put_rows(Queue& queue, ConstTensorView places, ConstTensorView from, TensorView to) {
  for (index_t t = 0; t < from.rows; ++t)
    if (const index_t place = places.as<std::int32_t>()[t]; place >= 0)
      copy(queue, from.row_range(t, 1), to.row_range(place, 1));
}

void CpuOps::add_positions(Queue& queue, ConstTensorView table, index_t first_row, index_t length,
                           TensorView x) {
  for (index_t t = 0; t < x.rows;) {
    const index_t position = (first_row + t) % length;
    const index_t count = std::min(length - position, x.rows - t);
    add(queue, table.row_range(position, count), x.row_range(t, count));
    t += count;
  }
}

void CpuOps::embed_scatter_add(Queue& queue, ConstTensorView ids, index_t row0, ConstTensorView dx,
                               TensorView dtable) {
  cpu::visit_activation(dx.dtype, [&]<class T>(T) {
    cpu::parallel_rows(threads_, dx.cols, kScatterCols, [&](index_t first, index_t last) {
      for (index_t t = 0; t < dx.rows; ++t) {
        const index_t row = ids.as<std::int32_t>()[t] - row0;
        if (row < 0 || row >= dtable.rows) continue;
        cpu::kernels_for<T>().add_to_float(cpu::row_of<T>(dx, t) + first,
                                           cpu::row_of<float>(dtable, row) + first, last - first);
      }
    });
  });
  queue.poll();
}

void CpuOps::random_init(Queue& queue, TensorView x, const RandomKey& key, index_t row0,
                         index_t col0, index_t global_cols, double std) {
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    for_rows(queue, x.rows, x.cols * 64, [&](index_t first, index_t last) {
      for (index_t r = first; r < last; ++r)
        init_row(cpu::row_of<T>(x, r), x.cols, key, (row0 + r) * global_cols + col0, std);
    });
  });
}

}  // namespace t3d
