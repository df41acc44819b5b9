#include "ops/cpu/cpu_ops.hpp"

#include "device/host_limits.hpp"

namespace t3d {
namespace {

constexpr index_t kBlockBytes = 32 << 10;  // of one block of rows: amortises its start
constexpr index_t kSliceBytes = 8 << 20;   // per thread between two polls: about a millisecond
constexpr index_t kSpan = 4096;            // elements

}  // namespace

CpuOps::CpuOps(int threads)
    : threads_(threads > 0 ? threads : cores_available()), gemm_(threads_) {}

void CpuOps::gemm(Queue& queue, const GemmArgs& args) {
  args.rows_alone ? multiply_rows(queue, args) : gemm_.run(queue, args);
}

void CpuOps::for_rows(Queue& queue, index_t rows, index_t bytes_per_row, const RowsFn& fn) const {
  const index_t bytes = std::max<index_t>(bytes_per_row, 1);
  const index_t grain = std::max<index_t>(1, kBlockBytes / bytes);
  const index_t slice = std::max(grain * threads_, kSliceBytes * threads_ / bytes);
  for (index_t from = 0; from < rows; from += slice) {
    cpu::parallel_rows(threads_, std::min(slice, rows - from), grain,
                       [&](index_t first, index_t last) { fn(from + first, from + last); });
    queue.poll();
  }
}

void CpuOps::for_spans(Queue& queue, index_t rows, index_t cols, bool flat,
                       const SpanFn& fn) const {
  if (flat) cols *= rows, rows = 1;
  if (cols <= 0) return;
  const index_t spans = (cols + kSpan - 1) / kSpan;
  const index_t bytes = std::min(cols, kSpan) * index_t{8};
  for_rows(queue, rows * spans, bytes, [&](index_t first, index_t last) {
    for (index_t s = first; s < last; ++s) {
      const index_t col = s % spans * kSpan;
      fn(s / spans, col, std::min(kSpan, cols - col));
    }
  });
}

void CpuOps::for_tasks(Queue& queue, index_t tasks, const std::function<void(index_t)>& fn) const {
  const index_t slice = 2 * static_cast<index_t>(threads_);
  for (index_t from = 0; from < tasks; from += slice) {
    cpu::parallel_rows(threads_, std::min(slice, tasks - from), 1,
                       [&](index_t first, index_t last) {
                         for (index_t task = first; task < last; ++task) fn(from + task);
                       });
    queue.poll();
  }
}

void CpuOps::add_partials(const float* partial, index_t blocks, index_t cols, float* to) const {
  cpu::parallel_rows(threads_, cols, 512, [&](index_t first, index_t last) {
    for (index_t c = first; c < last; ++c) {
      double total = 0;
      for (index_t b = 0; b < blocks; ++b) total += static_cast<double>(partial[b * cols + c]);
      to[c] = static_cast<float>(static_cast<double>(to[c]) + total);
    }
  });
}

std::unique_ptr<Ops> make_cpu_ops(int threads) { return std::make_unique<CpuOps>(threads); }

}  // namespace t3d
