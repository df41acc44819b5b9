#include "layers/mlp.hpp"

#include <cmath>

namespace t3d {

Mlp::Mlp(const Context& context, const std::string& name, const ModelShape& shape, ParamBucket& up,
         ParamBucket& down, ParamBucket* inner_vectors, ParamBucket* hidden_vectors)
    : context_(context),
      activation_(shape.model.activation == Activation::swiglu ? Activation::swiglu : Activation::gelu_tanh),
      up_(context, name + (activation_ == Activation::swiglu ? ".gate_up" : ".up"), Axis::j,
          shape.up_features(), shape.hidden_features(), up, inner_vectors, shape.model.init_std),
      down_(context, name + ".down", Axis::k, shape.hidden_features(), shape.ffn_features(), down,
            hidden_vectors,
            shape.model.init_std / std::sqrt(2.0 * static_cast<double>(shape.model.layers))) {}

DistTensor Mlp::forward(DistTensor h, Saved* saved) {
  const Partition tokens = h.layout.rows.partition;
  DistTensor u = up_.forward(h, saved != nullptr ? &saved->up_saved : nullptr);
  DistTensor active = DistTensor::make(context_, down_.input_layout(tokens), context_.activation,
                                       MemoryKind::activations);
  {
    const PhaseClock::Scope scope(context_.clock, "activation");
    context_.ops.activation_forward(context_.queue, activation_, u.local, active.local);
  }
  if (saved == nullptr) return down_.forward(active, nullptr);
  DistTensor y = down_.forward(active, &saved->down_saved);
  if (!saved->up_saved.gathered.allocated()) saved->input = std::move(h);
  saved->up = std::move(u);
  if (!saved->down_saved.gathered.allocated()) saved->active = std::move(active);
  return y;
}

DistTensor Mlp::backward(const DistTensor& dy, Saved& saved) {
  DistTensor dactive = down_.backward(dy, saved.active, saved.down_saved);
  saved.active.local.reset();
  DistTensor du{saved.up.layout, context_.make(context_.activation, saved.up.local.rows(),
                                               saved.up.local.cols(), MemoryKind::activations)};
  {
    const PhaseClock::Scope scope(context_.clock, "activation");
    context_.ops.activation_backward(context_.queue, activation_, saved.up.local, dactive.local,
                                     du.local);
  }
  saved.up.local.reset();
  dactive.local.reset();
  return up_.backward(du, saved.input, saved.up_saved);
}

void Mlp::predict(Ledger& ledger, const Partition& tokens, bool backward) const {
  up_.predict(ledger, tokens, backward);
  down_.predict(ledger, tokens, backward);
}

}  // namespace t3d
