#include "train/step/update.hpp"

#include <limits>

#include "train/device_numbers.hpp"

namespace t3d {
namespace {

Leaves leaves_of(const Plan& plan) {
  return {std::ssize(plan.replicas), plan.leaves_per_replica(), plan.leaf_weights()};
}

class UpdateBase : public Update {
 public:
  UpdateBase(const Context& context, const Plan& plan, const std::vector<ParamBucket*>& buckets)
      : context_(context),
        buckets_(buckets),
        groups_(buckets, plan.aggregate.per),
        leaves_(leaves_of(plan)) {
    AggregateSetup setup{context, plan, buckets_, groups_, leaves_, {}};
    if (plan.aggregate.method == AggregateMethod::adasum &&
        plan.aggregate.placement == AggregatePlacement::gain)
      setup.gain_exponent = plan.aggregate.gain_exponent;
    aggregation_ = make_aggregation(setup);
  }
  void settle() override { aggregation_->settle(); }
  void set_updates_done(index_t done) override { done_ = done; }
  void set_weights(const std::vector<double>& weights) override {
    if (weights == leaves_.weights) return;
    leaves_.weights = weights;
    aggregation_->set_weights(weights);
  }
  void set_loss_scale(double scale) override { loss_scale_ = scale; }
  [[nodiscard]] Aggregation& aggregation() override { return *aggregation_; }

 protected:
  [[nodiscard]] bool is_last(index_t leaf) const { return leaf + 1 == leaves_.per_replica; }

  const Context& context_;
  std::vector<ParamBucket*> buckets_;
  ParamGroups groups_;
  Leaves leaves_;
  std::unique_ptr<Aggregation> aggregation_;
  index_t done_ = 0;
  double loss_scale_ = 1;
};

class SharedUpdate final : public UpdateBase {
 public:
  SharedUpdate(const Context& context, const Plan& plan, const OptimizerConfig& options,
               const std::vector<ParamBucket*>& buckets)
      : UpdateBase(context, plan, buckets),
        optimizer_(make_optimizer(context, plan, options, buckets_)),
        started_(buckets_.size(), false) {
    if (leaves_.count() > 1 && aggregation_->summary().data == nullptr)
      leaf_squares_ = zeros(context, 1, 1);
  }

  void bucket_done(std::size_t bucket) override {
    if (started_[bucket] || buckets_[bucket]->frozen()) return;
    started_[bucket] = true;
    const TensorView shard = buckets_[bucket]->gradient_shard();
    if (leaf_squares_.allocated()) {
      const PhaseClock::Scope scope(context_.clock, "aggregate");
      context_.ops.sum_squares(context_.queue, shard, leaf_squares_);
    }
    aggregation_->start(bucket, shard);
  }
  void leaf_done(index_t leaf, double) override {
    for (const std::size_t at : groups_.trained())
      if (is_last(leaf))
        bucket_done(at);
      else
        aggregation_->keep(leaf, at, buckets_[at]->gradient_shard());
  }
  void aggregate() override {
    aggregation_->finish(1 / loss_scale_);
    started_.assign(buckets_.size(), false);
  }
  void add_squares(TensorView result) override {
    const ConstTensorView summary = aggregation_->summary();
    if (summary.data != nullptr) {  // the whole norm, on every rank
      if (context_.mesh.world().rank() == 0)
        context_.ops.add(context_.queue, summary.col_range(adasum_summary::mean_squares, 1),
                         result);
      return;
    }
    // Replicas hold equal shards; only the first one's count.
    if (context_.coord(Axis::d) != 0) return;
    add_gradient_squares(context_, buckets_, result);
    context_.ops.scale(context_.queue, result, 1 / (loss_scale_ * loss_scale_));
  }
  void add_leaf_squares(TensorView result) override {
    if (!leaf_squares_.allocated()) return;
    context_.ops.scale(context_.queue, leaf_squares_,
                       leaves_.weight_of(context_.coord(Axis::d)) / (loss_scale_ * loss_scale_));
    context_.ops.add(context_.queue, leaf_squares_, result);
    context_.ops.fill(context_.queue, leaf_squares_, 0);
  }
  void apply(double lr, ConstTensorView factor) override {
    optimizer_->update({++done_, lr, 1 / loss_scale_, factor, aggregation_->gains(), &groups_});
  }
  [[nodiscard]] std::vector<StateSlot> state() override {
    std::vector<StateSlot> slots;
    for (StateBuffers* buffers : optimizer_->state())
      slots.push_back({"optimizer/" + buffers->kind(), StateSlot::kShared, buffers});
    return slots;
  }

 private:
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<bool> started_;
  Tensor leaf_squares_;  // [1,1] fp64, of this rank's shards and not yet weighted
};

class LocalUpdate final : public UpdateBase {
 public:
  LocalUpdate(const Context& context, const Plan& plan, OptimizerConfig options,
              const std::vector<ParamBucket*>& buckets)
      : UpdateBase(context, plan, buckets), clip_norm_(options.clip_norm) {
    if (options.kind == OptimizerKind::adamw || options.kind == OptimizerKind::muon) {
      decay_ = options.weight_decay;
      options.weight_decay = 0;
    }
    for (index_t leaf = 0; leaf < leaves_.per_replica; ++leaf)
      optimizers_.push_back(make_optimizer(context, plan, options, buckets_));
    squares_ = zeros(context, 1, 1);
    all_squares_ = zeros(context, 1, 1);
    factor_ = zeros(context, 1, 1);
  }

  void bucket_done(std::size_t) override {}
  void leaf_done(index_t leaf, double lr) override;
  void aggregate() override { aggregation_->finish(1); }
  void add_squares(TensorView result) override {
    context_.ops.add(context_.queue, all_squares_, result);
    context_.ops.fill(context_.queue, all_squares_, 0);
  }
  void add_leaf_squares(TensorView) override {}  // adasum's summary has the noise, if any
  void apply(double lr, ConstTensorView) override;
  [[nodiscard]] std::vector<StateSlot> state() override;

 private:
  /// |gradient|^2 of the leaf, of the whole cuboid, on the host: a step along numbers that are not
  /// finite would spoil this leaf's optimizer for ever.
  [[nodiscard]] bool measure_gradient();
  void step_alone(index_t leaf, double lr);

  double clip_norm_, decay_ = 0;
  std::vector<std::unique_ptr<Optimizer>> optimizers_;
  Tensor squares_, all_squares_, factor_;
  std::vector<Tensor> before_, change_;  // by bucket
};

bool LocalUpdate::measure_gradient() {
  context_.ops.fill(context_.queue, squares_, 0);
  add_gradient_squares(context_, buckets_, squares_);
  Communicator& cuboid = context_.mesh.cuboid();
  if (cuboid.size() > 1) cuboid.all_reduce(squares_, ReduceOp::sum).wait(context_.queue);
  double squares = 0;
  context_.device.copy(&squares, squares_.view().data, sizeof squares, context_.queue);
  context_.queue.synchronize();
  return squares - squares == 0;
}

void LocalUpdate::step_alone(index_t leaf, double lr) {
  context_.ops.clip_factor(context_.queue, squares_, clip_norm_ * loss_scale_, factor_);
  before_.resize(buckets_.size());
  for (const std::size_t at : groups_.trained()) {
    const TensorView master = buckets_[at]->master();
    if (!before_[at].allocated())
      before_[at] = context_.make(master.dtype, 1, master.cols, MemoryKind::gradients);
    context_.ops.copy(context_.queue, master, before_[at]);
  }
  optimizers_[static_cast<std::size_t>(leaf)]->update(
      {done_ + 1, lr, 1 / loss_scale_, factor_, {}, nullptr});
}

void LocalUpdate::leaf_done(index_t leaf, double lr) {
  const bool finite = measure_gradient();
  // Reported: the root of the mean square over leaves. One that is left out is no reason to skip.
  if (finite && context_.mesh.cuboid().rank() == 0) {
    context_.ops.copy(context_.queue, squares_, factor_);
    context_.ops.scale(context_.queue, factor_,
                       1 / (loss_scale_ * loss_scale_ * static_cast<double>(leaves_.count())));
    context_.ops.add(context_.queue, factor_, all_squares_);
  }
  if (finite) step_alone(leaf, lr);
  change_.resize(buckets_.size());
  for (const std::size_t at : groups_.trained()) {
    const TensorView master = buckets_[at]->master();
    change_[at] = context_.make(master.dtype, 1, master.cols, MemoryKind::gradients);
    if (finite) {
      context_.ops.copy(context_.queue, master, change_[at]);
      context_.ops.axpby(context_.queue, {-1, {}}, before_[at], {1, {}}, change_[at]);
      context_.ops.copy(context_.queue, before_[at], master);
    } else {  // aggregation sees it and leaves the whole leaf out
      context_.ops.fill(context_.queue, change_[at], std::numeric_limits<double>::quiet_NaN());
    }
    if (is_last(leaf))
      aggregation_->start(at, change_[at]);
    else
      aggregation_->keep(leaf, at, change_[at]);
  }
  before_.clear();
}

void LocalUpdate::apply(double lr, ConstTensorView) {
  for (const std::size_t at : groups_.trained()) {
    for (const ParamEntry& entry : buckets_[at]->entries()) {
      const auto [first, last] = buckets_[at]->shard_range(entry);
      if (first >= last) continue;
      context_.ops.axpby(
          context_.queue, {1, {}}, change_[at].view().col_range(first, last - first),
          {entry.decay ? 1 - decay_ * optimizers_.front()->learning_rate(entry, lr) : 1, {}},
          buckets_[at]->master().col_range(first, last - first));
    }
  }
  change_.clear();
  ++done_;
}

std::vector<StateSlot> LocalUpdate::state() {
  std::vector<StateSlot> slots;
  const index_t first = context_.coord(Axis::d) * leaves_.per_replica;
  for (std::size_t at = 0; at < optimizers_.size(); ++at)
    for (StateBuffers* buffers : optimizers_[at]->state()) {
      const index_t leaf = first + static_cast<index_t>(at);
      slots.push_back({fmt::format("aggregate/leaf-{}/{}", leaf, buffers->kind()), leaf, buffers});
    }
  return slots;
}

}  // namespace

std::unique_ptr<Update> make_update(const Context& context, const Plan& plan,
                                    const OptimizerConfig& options,
                                    const std::vector<ParamBucket*>& buckets) {
  if (plan.updates_locally()) return std::make_unique<LocalUpdate>(context, plan, options, buckets);
  return std::make_unique<SharedUpdate>(context, plan, options, buckets);
}

}  // namespace t3d
