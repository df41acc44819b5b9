// Token and position embedding. The token table W[V x H] is cut over vocabulary|j and hidden|k like
// a linear's weight (the tied head uses it as one): a rank looks up the ids that its slice holds
// for all rows of its slab, and a reduce-scatter over j brings every row to its rank.
#pragma once
#include <string>

#include "layers/step_info.hpp"
#include "tensor3d/model_shape.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class Embedding {
 public:
  /// `table`: the bucket of wte; `vectors`: that of wpe, where positions are learned.
  Embedding(const Context& context, const ModelShape& shape, ParamBucket& table,
            ParamBucket& vectors);

  /// ids [1, rows of the slab] on the device.
  [[nodiscard]] DistTensor forward(ConstTensorView ids, const Partition& tokens,
                                   const PassInfo& pass);
  void backward(DistTensor dx, ConstTensorView ids, const PassInfo& pass);

  [[nodiscard]] int table_entry() const { return table_entry_; }

 private:
  [[nodiscard]] std::vector<index_t> counts(const Partition& tokens) const;
  void add_own_positions(DistTensor& x, ConstTensorView positions);
  void add_position_gradient(const DistTensor& dx, const PassInfo& pass);

  const Context& context_;
  const ModelShape& shape_;
  ParamBucket& table_;
  ParamBucket& vectors_;
  int table_entry_, position_entry_;  // position: -1 = none
};

}  // namespace t3d
