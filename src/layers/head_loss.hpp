// Output head and cross-entropy, cut over the vocabulary (axis j). Logits are never gathered: they are
// made in chunks of rows, each row's (max, sum of exponentials, target logit) is merged over j in one
// message, and the chunk is turned into its gradient at once, so no more than a chunk ever exists.
//
//   h [T x H | i,j | k] -> gather over j -> logits chunk [n x V | -,k | j] -> dlogits -> dh
#pragma once
#include "layers/model_shape.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class HeadLoss {
 public:
  /// `entry` of `table` is the [V x H] weight: the tied wte or the head's own.
  HeadLoss(const Context& context, const ModelShape& shape, ParamBucket& table, int entry);

  /// loss_sum [1,1] fp64 += the sum of -log p(target) over this rank's rows (on ranks of j = 0 only,
  /// so that the sum over the cuboid counts each row once). targets [1, rows of the slab].
  void evaluate(const DistTensor& h, ConstTensorView targets, TensorView loss_sum);
  /// The same, and the gradient of scale * loss with respect to h; adds to the weight's gradient.
  [[nodiscard]] DistTensor train(const DistTensor& h, ConstTensorView targets, double scale,
                                 TensorView loss_sum);
  /// Logits [1, V] in fp32 of row `row` of the slab-ordered micro-batch, on every rank of the cuboid.
  [[nodiscard]] Tensor logits_of_row(const DistTensor& h, index_t row);

  void predict(Ledger& ledger, const Partition& tokens, bool training) const;

 private:
  struct Chunk {
    index_t first, rows;  // of the slab
    Partition over_k;     // the chunk's rows at rest over k
  };
  [[nodiscard]] std::vector<Chunk> chunks(index_t rows) const;
  [[nodiscard]] std::vector<index_t> hidden_counts(const Partition& tokens) const;
  [[nodiscard]] Tensor gather_hidden(const DistTensor& h);
  [[nodiscard]] Tensor make_logits(ConstTensorView h, const Chunk& chunk);
  void merge_loss(Tensor& logits, ConstTensorView targets, Tensor& lse, TensorView loss_sum);
  void chunk_backward(Tensor& logits, const Chunk& chunk, ConstTensorView h, TensorView dh);

  const Context& context_;
  const ModelShape& shape_;
  ParamBucket& table_;
  int entry_;
};

}  // namespace t3d
