// MLP: up (gate | up for SwiGLU), activation, down.
//
//   h [T x H | i,j | k] -> u [T x F | i,k | j] -> act(u) -> y [T x H | i,j | k]
#pragma once
#include <string>

#include "layers/step_info.hpp"
#include "tensor3d/linear3d.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {

class Mlp {
 public:
  Mlp(const Context& context, const std::string& name, const ModelShape& shape, ParamBucket& up,
      ParamBucket& down, ParamBucket* inner_vectors, ParamBucket* hidden_vectors,
      const AdapterBuckets& adapters);

  struct Saved {
    DistTensor input, up, active;
    Linear3d::Saved up_saved, down_saved;
  };
  [[nodiscard]] DistTensor forward(DistTensor h, const PassInfo& pass, Saved* saved);
  [[nodiscard]] DistTensor backward(const DistTensor& dy, Saved& saved);

 private:
  const Context& context_;
  Activation activation_;
  Linear3d up_, down_;
};

}  // namespace t3d
