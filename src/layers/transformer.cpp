#include "layers/transformer.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace t3d {

Transformer::Transformer(const Context& context, const ModelShape& shape, bool recompute)
    : context_(context), shape_(shape) {
  for (BucketTable& table : parameter_buckets(shape_, context.mesh.shape(), context.mesh.coord())) {
    Communicator& group = context.mesh.group(table.group);
    owned_.push_back(std::make_unique<ParamBucket>(context, group, std::move(table)));
    buckets_.push_back(owned_.back().get());
  }
  const ModelConfig& model = shape_.model;
  std::size_t next = 0;
  const auto take = [&]() -> ParamBucket& { return *buckets_[next++]; };
  table_ = &take();
  hidden_vectors_ = &take();
  inner_vectors_ = &take();
  if (model.qk_norm) head_vectors_ = &take();
  if (model.lora.on()) {
    adapters_.over_k = &take();
    adapters_.over_j = &take();
  }
  shared_.assign(buckets_.begin() + 1, buckets_.begin() + static_cast<std::ptrdiff_t>(next));
  head_table_ = model.tied_embeddings ? table_ : &take();
  embedding_ = std::make_unique<Embedding>(context, shape_, *table_, *hidden_vectors_);
  for (index_t number = 0; number < model.layers; ++number) {
    ParamBucket &qkv = take(), &proj = take(), &up = take(), &down = take();
    const BlockBuckets buckets{qkv,           proj,     up, down, *inner_vectors_, *hidden_vectors_,
                               head_vectors_, adapters_};
    blocks_.push_back(std::make_unique<Block>(context, number, shape_, buckets, recompute));
  }
  final_norm_ = std::make_unique<Norm>(context, "final_norm", model.norm, model.hidden,
                                       model.norm_eps, *hidden_vectors_);
  head_ = std::make_unique<HeadLoss>(
      context, shape_, *head_table_,
      head_table_->entry(model.tied_embeddings ? "wte.weight" : "head.weight"));
  loss_sum_ = context_.make(DType::f64, 1, 1, MemoryKind::workspace);
  clear_loss();
}

void Transformer::allocate() {
  for (ParamBucket* bucket : buckets_) bucket->allocate();
}

void Transformer::initialise(std::uint64_t seed) {
  allocate();
  for (ParamBucket* bucket : buckets_) bucket->initialise(seed);
}

Transformer::Uploaded Transformer::upload(const MicroBatch& batch, index_t length) {
  const index_t rows = shape_.tokens(batch.sequences, length).size(context_.coord(Axis::i));
  T3D_CHECK(static_cast<index_t>(batch.ids.size()) == rows, "{} ids for a slab of {}",
            batch.ids.size(), rows);
  return {send_ids(batch.ids), send_ids(batch.targets)};
}

Tensor Transformer::send_ids(std::span<const std::int32_t> ids) {
  Tensor to = context_.make(DType::i32, 1, std::ssize(ids), MemoryKind::workspace);
  context_.device.copy(to.view().data, ids.data(), to.view().bytes(), context_.queue);
  return to;
}

DistTensor Transformer::forward(ConstTensorView ids, const Partition& tokens, const PassInfo& pass,
                                std::vector<Block::Saved>* saved) {
  const index_t context = shape_.model.context;
  T3D_CHECK(pass.length == context || (pass.kept != nullptr && pass.length <= context),
            "sequences of {} tokens, context {}", pass.length, context);
  for (ParamBucket* bucket : shared_) bucket->acquire();
  DistTensor x = embedding_->forward(ids, tokens, pass);
  for (std::size_t number = 0; number < blocks_.size(); ++number) {
    if (number + 1 < blocks_.size()) blocks_[number + 1]->buckets().front()->prefetch();
    x = blocks_[number]->forward(std::move(x), pass,
                                 saved != nullptr ? &(*saved)[number] : nullptr);
  }
  return x;
}

void Transformer::train(const MicroBatch& batch, PassInfo pass, double scale, bool last,
                        const GradientSink* sink) {
  pass.first_position = batch.first_position;
  const Uploaded data = upload(batch, pass.length);
  run_training(data, shape_.tokens(batch.sequences, pass.length), pass, scale, last, sink);
}

void Transformer::train_nothing(const GradientSink* sink) {
  if (!shape_.model.tied_embeddings) head_table_->start_reduce();
  for (std::size_t number = blocks_.size(); number-- > 0;) reduce_block(number, sink);
  reduce_shared();
}

void Transformer::reduce_block(std::size_t number, const GradientSink* sink) {
  for (ParamBucket* bucket : blocks_[number]->buckets()) bucket->start_reduce();
  // Those of the block before have had this one's backward pass for their way.
  if (number + 1 < blocks_.size()) tell(sink, blocks_[number + 1]->buckets());
}

void Transformer::reduce_shared() {
  table_->start_reduce();
  for (ParamBucket* bucket : shared_) bucket->start_reduce();
}

void Transformer::release_shared() {
  for (ParamBucket* bucket : shared_) bucket->release();
}

void Transformer::train_recorded(const MicroBatch& batch, PassInfo pass, double scale, bool last,
                                 int shape, const GradientSink* sink) {
  pass.first_position = batch.first_position;
  const Uploaded data = upload(batch, pass.length);
  const Device::Hold hold(context_.device);
  context_.queue.record(shape, [&] {
    run_training(data, shape_.tokens(batch.sequences, pass.length), pass, scale, last, sink);
    if (!last) return;
    finish_gradients();  // what was started in a recording must end in it
    if (sink != nullptr) sink->settle();
  });
}

void Transformer::run_training(const Uploaded& data, const Partition& tokens, const PassInfo& pass,
                               double scale, bool last, const GradientSink* sink) {
  std::vector<Block::Saved> saved(blocks_.size());
  DistTensor x = forward(data.ids, tokens, pass, &saved);
  Norm::Saved norm_saved;
  DistTensor dx;
  {
    const DistTensor h = final_norm_->forward(x, &norm_saved);
    const DistTensor dh = head_->train(h, data.targets, scale, loss_sum_);
    dx = {x.layout, context_.make(context_.activation, x.local.rows(), x.local.cols(),
                                  MemoryKind::activations)};
    context_.ops.fill(context_.queue, dx.local, 0);
    final_norm_->backward_add(dh, x, norm_saved, dx);
    x.local.reset();
  }
  if (last && !shape_.model.tied_embeddings) head_table_->start_reduce();
  for (std::size_t number = blocks_.size(); number-- > 0;) {
    blocks_[number]->backward(dx, pass, saved[number]);
    if (last) reduce_block(number, sink);
  }
  embedding_->backward(std::move(dx), data.ids, pass);
  if (last) reduce_shared();
  release_shared();
}

void Transformer::tell(const GradientSink* sink, const std::vector<ParamBucket*>& complete) {
  if (sink == nullptr) return;
  for (ParamBucket* bucket : complete) {
    bucket->finish_reduce();
    const auto place = std::find(buckets_.begin(), buckets_.end(), bucket);
    sink->complete(static_cast<std::size_t>(place - buckets_.begin()));
  }
}

void Transformer::evaluate(const MicroBatch& batch, PassInfo pass) {
  pass.first_position = batch.first_position;
  pass.training = false;
  const Uploaded data = upload(batch, pass.length);
  const DistTensor x =
      forward(data.ids, shape_.tokens(batch.sequences, pass.length), pass, nullptr);
  const DistTensor h = final_norm_->forward(x, nullptr);
  head_->evaluate(h, data.targets, loss_sum_);
  release_shared();
}

std::vector<float> Transformer::logits(std::span<const std::int32_t> ids, const Partition& tokens,
                                       PassInfo pass, const HeadLoss::RowsOfSlabs& rows) {
  pass.training = false;
  const Tensor on_device = send_ids(ids);
  const DistTensor x = forward(on_device, tokens, pass, nullptr);
  const DistTensor h = final_norm_->forward(x, nullptr);
  const Tensor logits = head_->logits_of(h, rows);
  release_shared();
  Tensor narrow = context_.make(DType::f32, logits.rows(), logits.cols(), MemoryKind::workspace);
  context_.ops.copy(context_.queue, logits, narrow);
  std::vector<float> result(static_cast<std::size_t>(logits.rows() * logits.cols()));
  context_.device.copy(result.data(), narrow.view().data, narrow.view().bytes(), context_.queue);
  context_.queue.synchronize();
  return result;
}

void Transformer::finish_gradients() {
  for (ParamBucket* bucket : buckets_) bucket->finish_reduce();
}

void Transformer::drop_gradients() {
  for (ParamBucket* bucket : buckets_) bucket->drop_gradients();
}

void Transformer::weights_changed() {
  for (ParamBucket* bucket : buckets_) bucket->invalidate();
}

void Transformer::clear_loss() { context_.ops.fill(context_.queue, loss_sum_, 0); }

double Transformer::loss_sum() {
  double value = 0;
  context_.device.copy(&value, loss_sum_.view().data, sizeof value, context_.queue);
  context_.queue.synchronize();
  return value;
}

}  // namespace t3d
