// The fast back end for host memory: oneDNN for matrix products, the kernels of kernels.hpp for
// the rest, rows shared out by parallel_rows. Results of the kernels do not depend on the number of
// threads: every sum over rows is over fixed blocks, added in order. (oneDNN may cut a matrix
// product's sum by threads; for one number of threads it is deterministic.)
#pragma once
#include <functional>
#include <vector>

#include "ops/adasum.hpp"
#include "ops/cpu/gemm.hpp"
#include "ops/cpu/kernels.hpp"
#include "ops/cpu/parallel.hpp"
#include "ops/ops.hpp"

namespace t3d {

class CpuOps final : public Ops {
 public:
  explicit CpuOps(int threads);
  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] bool supports(DType type) const override {
    return type == DType::f32 || type == DType::bf16;
  }

  void gemm(Queue&, const GemmArgs&) override;
  void trim() override { gemm_.trim(); }
  /// What trim() forgets.
  [[nodiscard]] std::size_t kept() { return gemm_.kept(); }

  void attention_forward(Queue&, const AttentionArgs&, TensorView out, TensorView lse) override;
  void attention_backward(Queue&, const AttentionArgs&, ConstTensorView out, ConstTensorView lse,
                          ConstTensorView dout, TensorView dqkv) override;
  void kept_attention(Queue&, const KeptAttentionArgs&, TensorView out) override;
  void rope(Queue&, const RopeArgs&) override;

  void norm_stats(Queue&, NormKind, ConstTensorView x, TensorView stats) override;
  void norm_merge(Queue&, NormKind, ConstTensorView stats, index_t parts, double eps,
                  TensorView moments) override;
  void norm_apply(Queue&, ConstTensorView x, ConstTensorView moments, ConstTensorView gamma,
                  ConstTensorView beta, TensorView y) override;
  void norm_backward_stats(Queue&, ConstTensorView dy, ConstTensorView x, ConstTensorView moments,
                           ConstTensorView gamma, TensorView sums) override;
  void norm_backward_apply(Queue&, NormKind, ConstTensorView dy, ConstTensorView x,
                           ConstTensorView moments, ConstTensorView gamma, ConstTensorView sums,
                           index_t length, bool accumulate, TensorView dx, TensorView dgamma,
                           TensorView dbeta) override;

  void activation_forward(Queue&, Activation, ConstTensorView x, TensorView y) override;
  void activation_backward(Queue&, Activation, ConstTensorView x, ConstTensorView dy,
                           TensorView dx) override;

  void embed_gather(Queue&, ConstTensorView ids, index_t row0, ConstTensorView table,
                    TensorView out) override;
  void put_rows(Queue&, ConstTensorView places, ConstTensorView from, TensorView to) override;
  void add_positions(Queue&, ConstTensorView table, index_t first_row, index_t length,
                     TensorView x) override;
  void embed_scatter_add(Queue&, ConstTensorView ids, index_t row0, ConstTensorView dx,
                         TensorView dtable) override;

  void xent_stats(Queue&, ConstTensorView logits, ConstTensorView targets, index_t col0,
                  TensorView stats) override;
  void xent_merge(Queue&, ConstTensorView stats, index_t parts, ConstTensorView targets,
                  TensorView lse, TensorView loss) override;
  void xent_grad(Queue&, TensorView logits, ConstTensorView targets, index_t col0,
                 ConstTensorView lse, double scale) override;

  void fill(Queue&, TensorView x, double value) override;
  void copy(Queue&, ConstTensorView from, TensorView to) override;
  void add(Queue&, ConstTensorView a, TensorView b) override;
  void scale(Queue&, TensorView x, double factor) override;
  void column_sums(Queue&, ConstTensorView x, TensorView out) override;
  void dropout(Queue&, const DropoutArgs&) override;

  void sum_squares(Queue&, ConstTensorView x, TensorView result) override;
  void sum(Queue&, ConstTensorView x, TensorView result) override;
  void adamw(Queue&, const AdamWArgs&) override;
  void sgd(Queue&, const SgdArgs&) override;
  void clip_factor(Queue&, ConstTensorView squares, double clip_norm, TensorView factor) override;
  void adam_direction(Queue&, const AdamWArgs&, TensorView direction) override;
  void axpby(Queue&, const Factor& a, ConstTensorView x, const Factor& b, TensorView y) override;
  void norm_ratios(Queue&, ConstTensorView numerators, ConstTensorView denominators,
                   ConstTensorView gains, TensorView ratios) override;

  void gram(Queue&, ConstTensorView x, std::span<const Segment> segments, TensorView gram) override;
  void adasum(Queue&, const AdasumArgs& args) override { adasum_on_host(args); }
  void flat_gains(Queue&, const FlatGainArgs& args) override { flat_gains_on_host(args); }
  void combine(Queue&, ConstTensorView x, std::span<const Segment> segments,
               ConstTensorView coefficients, TensorView out) override;
  void random_init(Queue&, TensorView x, const RandomKey& key, index_t row0, index_t col0,
                   index_t global_cols, double std) override;

 private:
  using RowsFn = std::function<void(index_t first, index_t last)>;
  using SpanFn = std::function<void(index_t row, index_t col, index_t n)>;
  /// fn over ranges of rows, in slices between which messages advance.
  void for_rows(Queue& queue, index_t rows, index_t bytes_per_row, const RowsFn& fn) const;
  /// fn over pieces of rows; with `flat` the whole matrix counts as one row.
  void for_spans(Queue& queue, index_t rows, index_t cols, bool flat, const SpanFn& fn) const;
  /// Tasks of at least a fraction of a millisecond each.
  void for_tasks(Queue& queue, index_t tasks, const std::function<void(index_t)>& fn) const;
  /// The matrix product with GemmArgs::rows_alone.
  void multiply_rows(Queue& queue, const GemmArgs& args) const;
  /// to[c] += sum over b of partial[b * cols + c], in the order of b.
  void add_partials(const float* partial, index_t blocks, index_t cols, float* to) const;
  template <class Fn>
  double sum_of_chunks(Queue& queue, index_t n, const Fn& chunk_sum) const;

  int threads_;
  cpu::Gemm gemm_;
};

namespace cpu {

/// Calls fn(T{}) with the C++ type of an activation.
template <class Fn>
void visit_activation(DType type, Fn&& fn) {
  if (type == DType::f32) return fn(float{});
  if (type == DType::bf16) return fn(bf16{});
  throw_error(ExitCode::internal, "the cpu back end has no {} activations", name_of(type));
}

template <class T, class Void>
[[nodiscard]] auto* row_of(const BasicView<Void>& view, index_t row) {
  return view.template as<T>() + row * view.ld;
}

}  // namespace cpu
}  // namespace t3d
