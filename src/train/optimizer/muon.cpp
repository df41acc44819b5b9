// Muon (Jordan 2024): the momentum of a hidden matrix, made orthogonal. All else (embeddings,
// positions, head, vectors) is AdamW's, with a learning rate of its own.
//
//   m = mu m + (1-mu) g;   x = m, or mu m + (1-mu) g (nesterov)
//   u = scale NewtonSchulz(x);   w -= lr (u + decay w)
//
// Fused weights (qkv; gate and up of swiglu) are one matrix, as they are stored: orthogonalising
// their parts one by one would be another optimizer, and a cuboid's ranks hold rows of all parts.
// m and Adam's m are one kind of state; hidden matrices have no v. x and u use the gradient's
// memory.
#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "train/optimizer/newton_schulz.hpp"
#include "train/optimizer/optimizer_shared.hpp"
#include "train/optimizer/whole_matrices.hpp"

namespace t3d {
namespace {

// Matrices inside blocks; "wte", "wpe" and "head" map tokens and places, not hidden vectors.
bool is_hidden_matrix(const ParamEntry& entry) {
  return !entry.vector && entry.decay && entry.name.starts_with("blocks.");
}

// Blocks keep each matrix in a bucket of its own.
bool has_others(const ParamBucket& bucket) {
  return !std::all_of(bucket.entries().begin(), bucket.entries().end(), is_hidden_matrix);
}

double update_scale(MuonScale kind, const ParamEntry& entry) {
  const auto rows = static_cast<double>(entry.rows), cols = static_cast<double>(entry.cols);
  // An orthogonal update's elements have root mean square 1 / sqrt(longer side); AdamW's about 0.2.
  if (kind == MuonScale::rms) return 0.2 * std::sqrt(std::max(rows, cols));
  return std::sqrt(std::max(1.0, rows / cols));
}

std::vector<EntryPlace> hidden_entries(const std::vector<ParamBucket*>& buckets) {
  std::vector<EntryPlace> result;
  for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
    const std::vector<ParamEntry>& entries = buckets[bucket]->entries();
    for (std::size_t at = 0; at < entries.size(); ++at)
      if (is_hidden_matrix(entries[at])) result.push_back({bucket, at});
  }
  return result;
}

class Muon final : public Optimizer {
 public:
  Muon(const Context& context, const Plan& plan, const OptimizerConfig& options,
       const std::vector<ParamBucket*>& buckets)
      : context_(context),
        options_(options),
        buckets_(buckets),
        matrices_(hidden_entries(buckets)),
        moments_(context, options, buckets, has_others),
        whole_(context, plan, buckets, matrices_) {}

  void update(const OptimizerStep& step) override {
    update_others(step);
    std::vector<TensorView> gradients;
    for (ParamBucket* bucket : buckets_) gradients.push_back(bucket->gradient_shard());
    add_to_momentum(step, gradients);
    whole_.transform_all(options_.nesterov ? gradients : moments_.first(), gradients,
                         [&](TensorView x) {
                           const PhaseClock::Scope scope(context_.clock, "orthogonalise");
                           newton_schulz(context_, x, options_.newton_schulz_steps);
                         });
    for (const EntryPlace& matrix : matrices_) apply(step, matrix);
  }
  [[nodiscard]] double learning_rate(const ParamEntry& entry, double lr) const override {
    if (is_hidden_matrix(entry) || options_.adamw_lr <= 0 || options_.lr <= 0) return lr;
    return lr * (options_.adamw_lr / options_.lr);
  }
  std::vector<StateBuffers*> state() override { return moments_.state(); }

 private:
  void update_others(OptimizerStep step) {
    if (options_.adamw_lr > 0 && options_.lr > 0) step.lr *= options_.adamw_lr / options_.lr;
    const auto rule_of = [&](std::size_t bucket, std::size_t entry) -> std::optional<Rule> {
      if (is_hidden_matrix(buckets_[bucket]->entries()[entry])) return std::nullopt;
      return gain_rule(buckets_, step, bucket, entry);
    };
    for (const Run& run : runs_of(buckets_, rule_of))
      context_.ops.adamw(context_.queue, moments_.args(step, run));
  }

  // Leaves x in the gradient shard where it is not the momentum itself.
  void add_to_momentum(const OptimizerStep& step, const std::vector<TensorView>& gradients) {
    const double mu = options_.momentum_or_default();
    const Factor fresh{(1 - mu) * step.grad_scale, step.factor};
    const std::vector<TensorView> momentum = moments_.first();
    for (const EntryPlace& matrix : matrices_) {
      const TensorView g = part(gradients[matrix.bucket], matrix);
      const TensorView m = part(momentum[matrix.bucket], matrix);
      context_.ops.axpby(context_.queue, fresh, g, {mu, {}}, m);
      if (options_.nesterov) context_.ops.axpby(context_.queue, {mu, {}}, m, fresh, g);
    }
  }

  // u += decay w and w -= lr gain u: the gain is known on the device only.
  void apply(const OptimizerStep& step, const EntryPlace& matrix) {
    ParamBucket& bucket = *buckets_[matrix.bucket];
    const ParamEntry& entry = bucket.entries()[matrix.entry];
    const TensorView u = part(bucket.gradient_shard(), matrix);
    const TensorView w = part(bucket.master(), matrix);
    const Rule rule = gain_rule(buckets_, step, matrix.bucket, matrix.entry);
    context_.ops.axpby(context_.queue, {options_.weight_decay, {}}, w,
                       {update_scale(options_.muon_scale, entry), {}}, u);
    context_.ops.axpby(context_.queue, {-step.lr, factor_of(step.gains, rule)}, u, {}, w);
  }

  [[nodiscard]] TensorView part(TensorView shard, const EntryPlace& matrix) const {
    const ParamBucket& bucket = *buckets_[matrix.bucket];
    const auto [first, last] = bucket.shard_range(bucket.entries()[matrix.entry]);
    return shard.col_range(first, last - first);
  }

  const Context& context_;
  OptimizerConfig options_;
  std::vector<ParamBucket*> buckets_;
  std::vector<EntryPlace> matrices_;
  AdamMoments moments_;
  WholeMatrices whole_;
};

}  // namespace

std::unique_ptr<Optimizer> make_muon(const Context& context, const Plan& plan,
                                     const OptimizerConfig& options,
                                     const std::vector<ParamBucket*>& buckets) {
  return std::make_unique<Muon>(context, plan, options, buckets);
}

}  // namespace t3d
