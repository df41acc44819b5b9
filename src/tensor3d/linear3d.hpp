// Linear3d: Y = X W^T + b on the cuboid (Bian et al. 2021, generalised to p x q x r and to unequal
// parts). With output axis o and contraction axis c
// ({o, c} = {j, k}; the two exchange roles from one linear to the next) rank (i, o, c) holds
//
//   X at rest  rows tokens|i then evenly|o   columns in|c      gather over o  -> X[M_i x K_c]
//   W at rest  a flat share of W[N_o x K_c]                    gather over i  -> W[N_o x K_c]
//   Y at rest  rows tokens|i then evenly|c   columns out|o     Y = X W^T, reduce-scatter over c
//
// so Y is the next linear's X with o and c exchanged. (a,1,1) is FSDP, (1,b,1) Megatron tensor +
// sequence parallelism, (a,b,1) their mesh.
//
// Bytes that a rank sends, forward and backward, kept operands:
//   (q-1) own part of X, its share of W times (p-1), and of Y what it does not keep; twice.
//
// Panels (attention layout B): the second cut of a side may be by columns instead of by rows. The
// local block then consists of column panels stacked one after another, each [M_i x panel].
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "tensor3d/adapter.hpp"
#include "tensor3d/context.hpp"
#include "tensor3d/features.hpp"
#include "tensor3d/linear_products.hpp"
#include "tensor3d/model_shape.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class Linear3d {
 public:
  /// `weights` holds name + ".weight" and is over axis i; `vectors`, over plane (i, in_axis), holds
  /// name + ".bias"; null for no bias.
  Linear3d(const Context& context, const std::string& name, const LinearShape& shape,
           ParamBucket& weights, ParamBucket* vectors);

  /// From now on with the adapter of the block's linear `which`, where the model has one there.
  void adapt(const std::string& name, const ModelConfig& model, BlockLinear which,
             const LinearShape& shape, const AdapterBuckets& adapters);
  /// Backward needs x: there is something to train.
  [[nodiscard]] bool needs_input() const { return adapter_.has_value() || !weights_.frozen(); }

  /// What backward needs beside x: the gathered input, where it was kept.
  struct Saved {
    Tensor gathered;
  };

  /// The unit of `tokens` is a sequence.
  [[nodiscard]] Layout input_layout(const Partition& tokens) const;
  [[nodiscard]] Layout output_layout(const Partition& tokens) const;

  /// `rows_alone`: as in GemmArgs.
  [[nodiscard]] DistTensor forward(const DistTensor& x, Saved* saved, bool rows_alone = false);
  /// dX; adds to the gradients of what is trained. x is read only where needs_input() and `saved`
  /// kept nothing.
  [[nodiscard]] DistTensor backward(const DistTensor& dy, const DistTensor& x, Saved& saved);

 private:
  [[nodiscard]] std::vector<index_t> counts(const Features& side, Axis other, index_t rows,
                                            const Partition& tokens,
                                            const std::vector<Panel>& panels) const;
  [[nodiscard]] Layout layout(const Features& side, Axis axis, Axis other,
                              const Partition& tokens) const;
  [[nodiscard]] TensorView gather(const DistTensor& x, const Features& side, Axis other,
                                  const std::vector<Panel>& panels, Tensor& buffer,
                                  const char* phase) const;
  void multiply_forward(ConstTensorView x, TensorView y, index_t rows, bool rows_alone);
  /// What multiply_wgrad() needs of it: Adapter::input_gradient().
  [[nodiscard]] Tensor multiply_dgrad(ConstTensorView dy, TensorView dx, index_t rows);
  void multiply_wgrad(ConstTensorView dy, ConstTensorView x, const Tensor& dlow, index_t rows);
  void weight_gradients(ConstTensorView dy, const DistTensor& x, Saved& saved, const Tensor& dlow,
                        index_t rows);
  void add_bias_gradient(const DistTensor& dy);
  [[nodiscard]] DType partial_dtype(const std::vector<Panel>& summed) const;

  const Context& context_;
  Axis out_axis_, in_axis_;
  Features out_, in_;
  ParamBucket& weights_;
  ParamBucket* vectors_;
  int weight_entry_, bias_entry_;  // bias: -1 = none
  LinearProducts products_;
  std::optional<Adapter> adapter_;
  index_t out_columns_, in_columns_;  // local N_o, K_c
};

}  // namespace t3d
