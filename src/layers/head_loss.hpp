// Output head and cross-entropy, cut over the vocabulary by j and, within, by k. A rank multiplies
// whole rows of h by its slice W[V_jk x H], so logits are never summed or gathered: with V >> H
// that moves far less than sums of partial logits over k would (docs/decisions/003). Logits exist
// in chunks of rows; each row's (max, sum of exponentials, target logit) is merged over (j,k) in
// one message, and the chunk is turned into its gradient at once.
//
//   h [T x H | i,j | k] -> gather over j, k -> logits chunk [n x V | i | j,k] -> dlogits -> dh
//   W [V_j x H_k] <-> W [V_jk x H]: one exchange over k, and one back for its gradient
#pragma once
#include <vector>

#include "tensor3d/model_shape.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class HeadLoss {
 public:
  /// `entry` of `table` is the [V x H] weight: the tied wte or the head's own.
  HeadLoss(const Context& context, const ModelShape& shape, ParamBucket& table, int entry);

  /// loss_sum [1,1] fp64 += the sum of -log p(target) over this slab's rows (on ranks of j = k = 0
  /// only, so that the sum over the cuboid counts each row once). targets [1, rows of the slab].
  void evaluate(const DistTensor& h, ConstTensorView targets, TensorView loss_sum);
  /// The same, and the gradient of scale * loss with respect to h; adds to the weight's gradient.
  [[nodiscard]] DistTensor train(const DistTensor& h, ConstTensorView targets, double scale,
                                 TensorView loss_sum);
  /// Rows by slab, counted within it.
  using RowsOfSlabs = std::vector<std::vector<index_t>>;
  /// Logits [all rows, V] in fp32 (fp64) of these rows, slab after slab, on every rank of the
  /// cuboid. Each row is computed alone (GemmArgs); meant for few.
  [[nodiscard]] Tensor logits_of(const DistTensor& h, const RowsOfSlabs& rows);

 private:
  [[nodiscard]] Partition chunks(index_t rows) const;
  [[nodiscard]] std::vector<index_t> row_counts(const Partition& tokens) const;
  [[nodiscard]] std::vector<index_t> panel_counts(index_t rows) const;
  [[nodiscard]] Tensor gather_panel(const DistTensor& h);
  [[nodiscard]] Tensor gather_hidden(const DistTensor& h);
  [[nodiscard]] Tensor join_logits(const Tensor& own, const RowsOfSlabs& rows);
  [[nodiscard]] DistTensor scatter_hidden(Tensor dwhole, const Layout& layout);
  [[nodiscard]] ConstTensorView own_weight(Tensor& buffer);
  void add_weight_gradient(const Tensor& gradient);
  struct Logits {
    Tensor memory;
    TensorView view;  // [rows, V_jk]; rows are padded
  };
  [[nodiscard]] Logits make_logits(ConstTensorView h, ConstTensorView weight);
  [[nodiscard]] Tensor merge_loss(ConstTensorView logits, ConstTensorView targets,
                                  TensorView loss_sum);
  void chunk_backward(ConstTensorView dlogits, ConstTensorView h, ConstTensorView weight,
                      TensorView dh, TensorView dweight, bool accumulate);

  const Context& context_;
  const ModelShape& shape_;
  ParamBucket& table_;
  int entry_;
  Partition slice_;                    // V_j over k
  index_t first_ = 0;                  // vocabulary id of this rank's first column
  std::vector<index_t> vocab_counts_;  // over (j, k)
};

}  // namespace t3d
