#include "layers/mlp.hpp"

namespace t3d {

Mlp::Mlp(const Context& context, const std::string& name, const ModelShape& shape, ParamBucket& up,
         ParamBucket& down, ParamBucket* inner_vectors, ParamBucket* hidden_vectors,
         const AdapterBuckets& adapters)
    : context_(context),
      activation_(shape.model.activation),
      up_(context, name + (activation_ == Activation::swiglu ? ".gate_up" : ".up"), shape.up(), up,
          inner_vectors),
      down_(context, name + ".down", shape.down(), down, hidden_vectors) {
  up_.adapt(name + (activation_ == Activation::swiglu ? ".gate_up" : ".up"), shape.model,
            BlockLinear::up, shape.up(), adapters);
  down_.adapt(name + ".down", shape.model, BlockLinear::down, shape.down(), adapters);
}

DistTensor Mlp::forward(DistTensor h, const PassInfo& pass, Saved* saved) {
  const Partition tokens = h.layout.rows.partition;
  const bool alone = pass.continues();
  DistTensor u = up_.forward(h, saved != nullptr ? &saved->up_saved : nullptr, alone);
  DistTensor active = DistTensor::make(context_, down_.input_layout(tokens), context_.activation,
                                       MemoryKind::activations);
  {
    const PhaseClock::Scope scope(context_.clock, "activation");
    context_.ops.activation_forward(context_.queue, activation_, u.local, active.local);
  }
  if (saved == nullptr) return down_.forward(active, nullptr, alone);
  DistTensor y = down_.forward(active, &saved->down_saved);
  if (up_.needs_input() && !saved->up_saved.gathered.allocated()) saved->input = std::move(h);
  saved->up = std::move(u);
  if (down_.needs_input() && !saved->down_saved.gathered.allocated())
    saved->active = std::move(active);
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

}  // namespace t3d
