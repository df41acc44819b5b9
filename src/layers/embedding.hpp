// Token and position embedding. The token table W[V x H] is cut over vocabulary|j and hidden|k like
// a linear's weight (the tied head uses it as one): a rank looks up the ids that its slice holds
// for all rows of its slab, and a reduce-scatter over j brings every row home.
#pragma once
#include <string>

#include "layers/model_shape.hpp"
#include "layers/step_info.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class Embedding {
 public:
  /// `table`: bucket over axis i for wte; `vectors`: plane (i,j), takes wpe (learned positions).
  Embedding(const Context& context, const ModelShape& shape, ParamBucket& table,
            ParamBucket& vectors);

  /// ids [1, rows of the slab] on the device.
  [[nodiscard]] DistTensor forward(ConstTensorView ids, const Partition& tokens,
                                   const PassInfo& pass);
  void backward(DistTensor dx, ConstTensorView ids, const PassInfo& pass);

  [[nodiscard]] int table_entry() const { return table_entry_; }
  void predict(Ledger& ledger, const Partition& tokens, bool backward) const;

 private:
  [[nodiscard]] std::vector<index_t> counts(const Partition& tokens) const;
  void add_position_gradient(const DistTensor& dx, const PassInfo& pass);

  const Context& context_;
  const ModelShape& shape_;
  ParamBucket& table_;
  ParamBucket& vectors_;
  int table_entry_ = -1, position_entry_ = -1;
};

/// wte, or an untied head.weight: [V x H] cut over j and k.
[[nodiscard]] ParamEntry vocabulary_entry(const Context& context, const ModelShape& shape,
                                          std::string name);

}  // namespace t3d
