// The CUDA back end. Each file beside this one holds one family of kernels and the verbs that
// launch them; what several of them share is in launch.cuh, numbers.cuh, reduce.cuh and ptx.cuh.
// Matmul and attention have several engines (engines.hpp); everything else is written here alone.
#pragma once
#include <memory>
#include <string>

#include "ops/cuda/engines.hpp"
#include "ops/ops.hpp"

namespace t3d::cuda {

class CudaOps final : public Ops {
 public:
  explicit CudaOps(Device& device, EngineOptions options = {});
  ~CudaOps() override;
  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  [[nodiscard]] bool supports(DType activation) const override {
    return activation == DType::f32 || activation == DType::bf16 || activation == DType::f16;
  }

  [[nodiscard]] std::vector<std::string> notes() const override { return engines_->notes(); }
  [[nodiscard]] std::string choices() const override { return engines_->table(); }
  void save_choices(const std::string& path) const override { engines_->save_cache(path); }

  // engines.cpp
  void gemm(Queue&, const GemmArgs&) override;
  void attention_forward(Queue&, const AttentionArgs&, TensorView out, TensorView lse) override;
  void attention_backward(Queue&, const AttentionArgs&, ConstTensorView out, ConstTensorView lse,
                          ConstTensorView dout, TensorView dqkv) override;
  // attention_kept.cu
  void kept_attention(Queue&, const KeptAttentionArgs&, TensorView out) override;
  // rope.cu
  void rope(Queue&, const RopeArgs&) override;
  // norm_forward.cu
  void norm_stats(Queue&, NormKind, ConstTensorView x, TensorView stats) override;
  void norm_merge(Queue&, NormKind, ConstTensorView stats, index_t parts, double eps,
                  TensorView moments) override;
  void norm_apply(Queue&, ConstTensorView x, ConstTensorView moments, ConstTensorView gamma,
                  ConstTensorView beta, TensorView y) override;
  // norm_whole.cu
  void norm_forward(Queue& queue, const NormArgs& args) override;
  // norm_backward.cu
  void norm_backward_stats(Queue&, ConstTensorView dy, ConstTensorView x, ConstTensorView moments,
                           ConstTensorView gamma, TensorView sums) override;
  void norm_backward_apply(Queue&, NormKind, ConstTensorView dy, ConstTensorView x,
                           ConstTensorView moments, ConstTensorView gamma, ConstTensorView sums,
                           index_t length, bool accumulate, TensorView dx, TensorView dgamma,
                           TensorView dbeta) override;
  // activation.cu
  void activation_forward(Queue&, Activation, ConstTensorView x, TensorView y) override;
  void activation_backward(Queue&, Activation, ConstTensorView x, ConstTensorView dy,
                           TensorView dx) override;
  // embed.cu
  void embed_gather(Queue&, ConstTensorView ids, index_t row0, ConstTensorView table,
                    TensorView out) override;
  void put_rows(Queue&, ConstTensorView places, ConstTensorView from, TensorView to) override;
  void add_positions(Queue&, ConstTensorView table, index_t first_row, index_t length,
                     TensorView x) override;
  void embed_scatter_add(Queue&, ConstTensorView ids, index_t row0, ConstTensorView dx,
                         TensorView dtable) override;
  // xent.cu
  void xent_stats(Queue&, ConstTensorView logits, ConstTensorView targets, index_t col0,
                  TensorView stats) override;
  void xent_merge(Queue&, ConstTensorView stats, index_t parts, ConstTensorView targets,
                  TensorView lse, TensorView loss) override;
  void xent_grad(Queue&, TensorView logits, ConstTensorView targets, index_t col0,
                 ConstTensorView lse, double scale) override;
  // elementwise.cu
  void fill(Queue&, TensorView x, double value) override;
  void copy(Queue&, ConstTensorView from, TensorView to) override;
  void add(Queue&, ConstTensorView a, TensorView b) override;
  void scale(Queue&, TensorView x, double factor) override;
  // random.cu
  void dropout(Queue&, const DropoutArgs&) override;
  void random_init(Queue&, TensorView x, const RandomKey& key, index_t row0, index_t col0,
                   index_t global_cols, double std) override;
  // sums.cu
  void column_sums(Queue&, ConstTensorView x, TensorView out) override;
  void sum_squares(Queue&, ConstTensorView x, TensorView result) override;
  void sum(Queue&, ConstTensorView x, TensorView result) override;
  // optimizer.cu
  void adamw(Queue&, const AdamWArgs&) override;
  void sgd(Queue&, const SgdArgs&) override;
  void clip_factor(Queue&, ConstTensorView squares, double clip_norm, TensorView factor) override;
  void adam_direction(Queue&, const AdamWArgs&, TensorView direction) override;
  void axpby(Queue&, const Factor& a, ConstTensorView x, const Factor& b, TensorView y) override;
  void norm_ratios(Queue&, ConstTensorView numerators, ConstTensorView denominators,
                   ConstTensorView gains, TensorView ratios) override;
  // gram.cu
  void gram(Queue&, ConstTensorView x, std::span<const Segment> segments, TensorView gram) override;
  // adasum.cu
  void adasum(Queue&, const AdasumArgs&) override;
  // flat_gains.cu
  void flat_gains(Queue&, const FlatGainArgs&) override;
  // combine.cu
  void combine(Queue&, ConstTensorView x, std::span<const Segment> segments,
               ConstTensorView coefficients, TensorView out) override;

 private:
  /// gemm_rows.cu: the matrix product with GemmArgs::rows_alone.
  void multiply_rows(Queue& queue, const GemmArgs& args);

  Device& device_;
  std::unique_ptr<Engines> engines_;
};

}  // namespace t3d::cuda
