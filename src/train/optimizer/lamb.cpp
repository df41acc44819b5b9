// LAMB (You et al. 2020, as in apex): Adam's direction r, with the decay in it, and for every
// logical tensor its own rate lr |w| / |r|.
//
//   1. r overwrites the gradient shard                         every element by itself
//   2. |w|^2 and |r|^2 of this rank's part of every tensor     [2, tensors] fp64
//   3. one all-reduce over the cuboid: every element counted once
//   4. ratios [1, tensors] on the device, times the gains of the step
//   5. w -= lr ratio r
//
// The ratio is 1 where either norm is 0 and, as in apex, for tensors without decay (vectors): there
// the squares stay 0. The host reads none of these numbers.
#include "train/optimizer/optimizer_shared.hpp"

namespace t3d {
namespace {

class Lamb final : public Optimizer {
 public:
  Lamb(const Context& context, const OptimizerConfig& options,
       const std::vector<ParamBucket*>& buckets)
      : context_(context),
        buckets_(buckets),
        tensors_(buckets, GroupBy::tensor),
        moments_(context, options, buckets),
        squares_(context.make(DType::f64, 2, tensors_.count(), MemoryKind::optimizer)),
        ratios_(context.make(DType::f64, 1, tensors_.count(), MemoryKind::optimizer)),
        gains_(context.make(DType::f64, 1, tensors_.count(), MemoryKind::optimizer)) {
    for (std::size_t number = 0; number < buckets.size(); ++number) {
      std::vector<Segment>& segments = decaying_.emplace_back();
      const std::vector<ParamEntry>& entries = buckets[number]->entries();
      for (std::size_t at = 0; at < entries.size(); ++at) {
        const auto [first, last] = buckets[number]->shard_range(entries[at]);
        if (entries[at].decay && first < last)
          segments.push_back({first, last, tensors_.of(number, at)});
      }
    }
  }

  void update(const OptimizerStep& step) override {
    const auto by_decay = [&](std::size_t bucket, std::size_t entry) {
      return Rule{buckets_[bucket]->entries()[entry].decay, Rule::kNone};
    };
    for (const Run& run : runs_of(buckets_, by_decay))
      context_.ops.adam_direction(context_.queue, moments_.args(step, run),
                                  run.in(buckets_[run.bucket]->gradient_shard()));
    sum_squares();
    const ConstTensorView gains = gains_by_tensor(step);
    context_.ops.norm_ratios(context_.queue, squares(kWeights), squares(kDirections), gains,
                             ratios_);
    const auto by_ratio = [&](std::size_t bucket, std::size_t entry) {
      const bool scaled = gains.data != nullptr || buckets_[bucket]->entries()[entry].decay;
      return Rule{false, scaled ? tensors_.of(bucket, entry) : Rule::kNone};
    };
    for (const Run& run : runs_of(buckets_, by_ratio))
      context_.ops.axpby(context_.queue, {-step.lr, factor_of(ratios_, run.rule)},
                         run.in(buckets_[run.bucket]->gradient_shard()), {},
                         run.in(buckets_[run.bucket]->master()));
  }

  std::vector<StateBuffers*> state() override { return moments_.state(); }

 private:
  enum Row : index_t { kWeights, kDirections };
  [[nodiscard]] TensorView squares(Row row) const { return squares_.view().row_range(row, 1); }

  void sum_squares() {
    const PhaseClock::Scope scope(context_.clock, "norms of tensors");
    context_.ops.fill(context_.queue, squares_, 0);
    const auto add = [&](TensorView shard, std::size_t bucket, Row row) {
      context_.ops.gram(context_.queue, shard, decaying_[bucket],
                        squares(row).reshaped(tensors_.count(), 1));
    };
    for (const std::size_t bucket : tensors_.trained()) {
      add(buckets_[bucket]->master(), bucket, kWeights);
      add(buckets_[bucket]->gradient_shard(), bucket, kDirections);
    }
    Communicator& cuboid = context_.mesh.cuboid();
    if (cuboid.size() > 1)
      cuboid.all_reduce(squares_.view().flat(), ReduceOp::sum).wait(context_.queue);
  }

  // The gain of every tensor, out of those of the step's groups.
  ConstTensorView gains_by_tensor(const OptimizerStep& step) {
    if (step.gains.data == nullptr) return {};
    if (step.groups->count() == tensors_.count()) return step.gains;  // the same groups
    for (std::size_t bucket = 0; bucket < buckets_.size(); ++bucket)
      for (std::size_t entry = 0; entry < buckets_[bucket]->entries().size(); ++entry)
        context_.ops.copy(context_.queue, step.gains.col_range(step.groups->of(bucket, entry), 1),
                          gains_.view().col_range(tensors_.of(bucket, entry), 1));
    return gains_;
  }

  const Context& context_;
  std::vector<ParamBucket*> buckets_;
  ParamGroups tensors_;
  AdamMoments moments_;
  std::vector<std::vector<Segment>> decaying_;  // by bucket
  Tensor squares_;                              // [2, tensors]
  Tensor ratios_, gains_;                       // [1, tensors]
};

}  // namespace

std::unique_ptr<Optimizer> make_lamb(const Context& context, const OptimizerConfig& options,
                                     const std::vector<ParamBucket*>& buckets) {
  return std::make_unique<Lamb>(context, options, buckets);
}

}  // namespace t3d
