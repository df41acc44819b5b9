// Ops that do nothing: a dry run walks the whole program with pointers that must not be read.
#include "ops/ops.hpp"

namespace t3d {
namespace {

class DryOps final : public Ops {
 public:
  [[nodiscard]] std::string_view name() const override { return "dry"; }
  [[nodiscard]] bool supports(DType activation) const override { return activation != DType::i32; }

  void gemm(Queue&, const GemmArgs&) override {}
  void attention_forward(Queue&, const AttentionArgs&, TensorView, TensorView) override {}
  void attention_backward(Queue&, const AttentionArgs&, ConstTensorView, ConstTensorView,
                          ConstTensorView, TensorView) override {}
  void kept_attention(Queue&, const KeptAttentionArgs&, TensorView) override {}
  void rope(Queue&, const RopeArgs&) override {}
  void norm_stats(Queue&, NormKind, ConstTensorView, TensorView) override {}
  void norm_merge(Queue&, NormKind, ConstTensorView, index_t, double, TensorView) override {}
  void norm_apply(Queue&, ConstTensorView, ConstTensorView, ConstTensorView, ConstTensorView,
                  TensorView) override {}
  void norm_backward_stats(Queue&, ConstTensorView, ConstTensorView, ConstTensorView,
                           ConstTensorView, TensorView) override {}
  void norm_backward_apply(Queue&, NormKind, ConstTensorView, ConstTensorView, ConstTensorView,
                           ConstTensorView, ConstTensorView, index_t, bool, TensorView, TensorView,
                           TensorView) override {}
  void activation_forward(Queue&, Activation, ConstTensorView, TensorView) override {}
  void activation_backward(Queue&, Activation, ConstTensorView, ConstTensorView,
                           TensorView) override {}
  void put_rows(Queue&, ConstTensorView, ConstTensorView, TensorView) override {}
  void embed_gather(Queue&, ConstTensorView, index_t, ConstTensorView, TensorView) override {}
  void add_positions(Queue&, ConstTensorView, index_t, index_t, TensorView) override {}
  void embed_scatter_add(Queue&, ConstTensorView, index_t, ConstTensorView, TensorView) override {}
  void xent_stats(Queue&, ConstTensorView, ConstTensorView, index_t, TensorView) override {}
  void xent_merge(Queue&, ConstTensorView, index_t, ConstTensorView, TensorView,
                  TensorView) override {}
  void xent_grad(Queue&, TensorView, ConstTensorView, index_t, ConstTensorView, double) override {}
  void fill(Queue&, TensorView, double) override {}
  void copy(Queue&, ConstTensorView, TensorView) override {}
  void add(Queue&, ConstTensorView, TensorView) override {}
  void scale(Queue&, TensorView, double) override {}
  void column_sums(Queue&, ConstTensorView, TensorView) override {}
  void dropout(Queue&, const DropoutArgs&) override {}
  void sum_squares(Queue&, ConstTensorView, TensorView) override {}
  void sum(Queue&, ConstTensorView, TensorView) override {}
  void adamw(Queue&, const AdamWArgs&) override {}
  void sgd(Queue&, const SgdArgs&) override {}
  void clip_factor(Queue&, ConstTensorView, double, TensorView) override {}
  void adam_direction(Queue&, const AdamWArgs&, TensorView) override {}
  void axpby(Queue&, const Factor&, ConstTensorView, const Factor&, TensorView) override {}
  void norm_ratios(Queue&, ConstTensorView, ConstTensorView, ConstTensorView, TensorView) override {
  }
  void gram(Queue&, ConstTensorView, std::span<const Segment>, TensorView) override {}
  void adasum(Queue&, const AdasumArgs&) override {}
  void flat_gains(Queue&, const FlatGainArgs&) override {}
  void combine(Queue&, ConstTensorView, std::span<const Segment>, ConstTensorView,
               TensorView) override {}
  void random_init(Queue&, TensorView, const RandomKey&, index_t, index_t, index_t,
                   double) override {}
};

}  // namespace

std::unique_ptr<Ops> make_dry_ops() { return std::make_unique<DryOps>(); }

}  // namespace t3d
