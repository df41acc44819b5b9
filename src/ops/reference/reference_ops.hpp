// The definition of every verb. Arguments are read into fp64 matrices, the loops are the formulas
// of the contract in fp64, and results are rounded once on the way out. Nothing here is fast.
#pragma once
#include "ops/adasum.hpp"
#include "ops/ops.hpp"

namespace t3d {

class ReferenceOps : public Ops {
 public:
  [[nodiscard]] std::string_view name() const override { return "reference"; }
  [[nodiscard]] bool supports(DType activation) const override { return activation != DType::i32; }

  void gemm(Queue&, const GemmArgs&) override;

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
};

}  // namespace t3d
