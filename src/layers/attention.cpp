#include "layers/attention.hpp"

#include "core/error.hpp"

namespace t3d {
Attention::Attention(const Context& context, const std::string& name, const ModelShape& shape,
                     ParamBucket& qkv, ParamBucket& proj, ParamBucket* inner_vectors,
                     ParamBucket* hidden_vectors, ParamBucket* head_vectors)
    : context_(context),
      shape_(shape),
      qkv_(context, name + ".qkv", shape.qkv(), qkv, inner_vectors),
      proj_(context, name + ".proj", shape.proj(), proj, hidden_vectors) {
  if (head_vectors == nullptr) return;
  q_norm_.emplace(context, name + ".q_norm", shape.model.norm_eps, *head_vectors);
  k_norm_.emplace(context, name + ".k_norm", shape.model.norm_eps, *head_vectors);
}

AttentionArgs Attention::arguments(const DistTensor& qkv, const PassInfo& pass) const {
  const ModelConfig& model = shape_.model;
  AttentionArgs args;
  args.qkv = qkv.local;
  args.length = pass.length;
  args.sequences = qkv.local.rows() / pass.length;
  args.head_size = model.head_size();
  const index_t group_heads = shape_.query_heads_per_group();
  args.kv_heads = qkv.local.cols() / ((group_heads + 2) * args.head_size);
  args.heads = args.kv_heads * group_heads;
  return args;
}

TensorView Attention::queries(DistTensor& qkv, const PassInfo& pass) const {
  const AttentionArgs args = arguments(qkv, pass);
  return qkv.local.view().col_range(0, args.heads * args.head_size);
}

TensorView Attention::keys(DistTensor& qkv, const PassInfo& pass) const {
  const AttentionArgs args = arguments(qkv, pass);
  return qkv.local.view().col_range(args.heads * args.head_size, args.kv_heads * args.head_size);
}

void Attention::rotate(DistTensor& qkv, const PassInfo& pass, bool inverse) const {
  if (shape_.model.position != Position::rope) return;
  const AttentionArgs args = arguments(qkv, pass);
  const TensorView q_and_k =
      qkv.local.view().col_range(0, (args.heads + args.kv_heads) * args.head_size);
  context_.ops.rope(context_.queue, {q_and_k, pass.length, args.head_size,
                                     rope_frequencies(shape_.model.rope, args.head_size), inverse});
}

DistTensor Attention::forward(DistTensor h, const PassInfo& pass, Saved* saved) {
  const Partition tokens = h.layout.rows.partition;
  DistTensor qkv = qkv_.forward(h, saved != nullptr ? &saved->qkv_saved : nullptr);
  DistTensor out = DistTensor::make(context_, proj_.input_layout(tokens), context_.activation,
                                    MemoryKind::activations);
  Tensor lse;
  {
    const PhaseClock::Scope scope(context_.clock, "attention");
    if (q_norm_) {
      q_norm_->forward(queries(qkv, pass), saved != nullptr ? &saved->q_norm : nullptr);
      k_norm_->forward(keys(qkv, pass), saved != nullptr ? &saved->k_norm : nullptr);
    }
    rotate(qkv, pass, false);
    const AttentionArgs args = arguments(qkv, pass);
    lse = context_.make(context_.accumulator(), qkv.local.rows(), args.heads,
                        MemoryKind::activations);
    context_.ops.attention_forward(context_.queue, args, out.local, lse);
  }
  if (saved == nullptr) return proj_.forward(out, nullptr);
  DistTensor o = proj_.forward(out, &saved->proj_saved);
  if (!saved->qkv_saved.gathered.allocated()) saved->input = std::move(h);
  saved->qkv = std::move(qkv);
  saved->out = std::move(out);
  saved->lse = std::move(lse);
  return o;
}

DistTensor Attention::backward(const DistTensor& dout, const PassInfo& pass, Saved& saved) {
  DistTensor da = proj_.backward(dout, saved.out, saved.proj_saved);
  DistTensor dqkv{saved.qkv.layout, context_.make(context_.activation, saved.qkv.local.rows(),
                                                  saved.qkv.local.cols(), MemoryKind::activations)};
  {
    const PhaseClock::Scope scope(context_.clock, "attention");
    context_.ops.attention_backward(context_.queue, arguments(saved.qkv, pass), saved.out.local,
                                    saved.lse, da.local, dqkv.local);
    rotate(dqkv, pass, true);
    if (q_norm_) {
      q_norm_->backward(queries(dqkv, pass), saved.q_norm);
      k_norm_->backward(keys(dqkv, pass), saved.k_norm);
    }
  }
  saved.qkv.local.reset();
  saved.out.local.reset();
  da.local.reset();
  return qkv_.backward(dqkv, saved.input, saved.qkv_saved);
}

}  // namespace t3d
