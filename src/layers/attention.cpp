#include "layers/attention.hpp"

#include "core/error.hpp"
#include "layers/kv_cache.hpp"

namespace t3d {
Attention::Attention(const Context& context, const std::string& name, index_t number,
                     const ModelShape& shape, ParamBucket& qkv, ParamBucket& proj,
                     ParamBucket* inner_vectors, ParamBucket* hidden_vectors,
                     ParamBucket* head_vectors, const AdapterBuckets& adapters)
    : context_(context),
      number_(number),
      shape_(shape),
      qkv_(context, name + ".qkv", shape.qkv(), qkv, inner_vectors),
      proj_(context, name + ".proj", shape.proj(), proj, hidden_vectors) {
  qkv_.adapt(name + ".qkv", shape.model, BlockLinear::qkv, shape.qkv(), adapters);
  proj_.adapt(name + ".proj", shape.model, BlockLinear::proj, shape.proj(), adapters);
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
  RopeArgs turn{q_and_k, pass.length, args.head_size,
                rope_frequencies(shape_.model.rope, args.head_size), inverse};
  if (pass.continues()) turn.positions = rows_of(pass.kept->positions, qkv);
  context_.ops.rope(context_.queue, turn);
}

// Of one number for each row of the slab, those of this rank's rows of q, k and v.
ConstTensorView Attention::rows_of(ConstTensorView numbers, const DistTensor& qkv) const {
  const Box box = qkv.layout.box(context_.mesh.shape(), context_.mesh.coord());
  const index_t slab = qkv.layout.rows.partition.begin(context_.coord(Axis::i));
  return numbers.col_range(box.row0 - slab, box.rows);
}

void Attention::keep(DistTensor& qkv, const PassInfo& pass) const {
  const AttentionArgs args = arguments(qkv, pass);
  const index_t width = args.kv_heads * args.head_size;
  const ConstTensorView places = rows_of(pass.kept->places, qkv);
  const KvCache::Layer kept = pass.kept->cache.layer(number_);
  context_.ops.put_rows(context_.queue, places, keys(qkv, pass), kept.keys);
  context_.ops.put_rows(context_.queue, places,
                        qkv.local.view().col_range(qkv.local.cols() - width, width), kept.values);
}

void Attention::attend_to_kept(DistTensor& qkv, const PassInfo& pass, TensorView out) const {
  const AttentionArgs args = arguments(qkv, pass);
  const KvCache& cache = pass.kept->cache;
  const KvCache::Layer kept = cache.layer(number_);
  context_.ops.kept_attention(
      context_.queue,
      {queries(qkv, pass), kept.keys, kept.values, rows_of(pass.kept->places, qkv),
       cache.capacity(), args.heads, args.kv_heads, args.head_size},
      out);
}

void Attention::attend(DistTensor& qkv, const PassInfo& pass, TensorView out, Tensor& lse) {
  if (pass.kept != nullptr) keep(qkv, pass);
  if (pass.continues()) return attend_to_kept(qkv, pass, out);
  const AttentionArgs args = arguments(qkv, pass);
  lse =
      context_.make(context_.accumulator(), qkv.local.rows(), args.heads, MemoryKind::activations);
  context_.ops.attention_forward(context_.queue, args, out, lse);
}

DistTensor Attention::forward(DistTensor h, const PassInfo& pass, Saved* saved) {
  const Partition tokens = h.layout.rows.partition;
  const bool alone = pass.continues();
  DistTensor qkv = qkv_.forward(h, saved != nullptr ? &saved->qkv_saved : nullptr, alone);
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
    attend(qkv, pass, out.local, lse);
  }
  if (saved == nullptr) return proj_.forward(out, nullptr, alone);
  DistTensor o = proj_.forward(out, &saved->proj_saved);
  if (qkv_.needs_input() && !saved->qkv_saved.gathered.allocated()) saved->input = std::move(h);
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
