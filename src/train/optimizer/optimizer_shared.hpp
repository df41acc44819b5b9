// What the optimizers share: state of share size, runs of elements with one rule, Adam's moments,
// and who makes which kind.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "train/optimizer/optimizer.hpp"

namespace t3d {

/// Which buckets have a kind of state; the same ones on every rank.
using HasState = std::function<bool(const ParamBucket&)>;
/// State buffers of share size, zeroed, one per bucket; not allocated where there is none.
[[nodiscard]] std::vector<Tensor> make_state(const Context& context,
                                             const std::vector<ParamBucket*>& buckets,
                                             const HasState& has_state = {});
[[nodiscard]] std::vector<TensorView> views(const std::vector<Tensor>& tensors);

/// How an entry is treated: whether it decays, and which column of a [1,n] table of factors is its.
struct Rule {
  static constexpr index_t kNone = -1;
  bool decays = false;
  index_t column = kNone;  // kNone: factor 1
  friend bool operator==(const Rule&, const Rule&) = default;
};
/// The factor [1,1] of a rule; empty data = 1.
[[nodiscard]] ConstTensorView factor_of(ConstTensorView table, const Rule& rule);

/// Elements [first, first + count) of this rank's share of a bucket have one rule.
struct Run {
  std::size_t bucket = 0;
  index_t first = 0, count = 0;
  Rule rule;
  [[nodiscard]] TensorView in(TensorView share) const { return share.col_range(first, count); }
};
/// The rule of entry `entry` of bucket `bucket`, or nothing where it is left out.
using RuleOf = std::function<std::optional<Rule>(std::size_t bucket, std::size_t entry)>;
/// Neighbouring entries with equal rules are one run: a GPU pays for every launch.
[[nodiscard]] std::vector<Run> runs_of(const std::vector<ParamBucket*>& buckets,
                                       const RuleOf& rule_of);
/// An entry's decay, and its gain in this step.
[[nodiscard]] Rule gain_rule(const std::vector<ParamBucket*>& buckets, const OptimizerStep& step,
                             std::size_t bucket, std::size_t entry);

/// Adam's m of every element and v of those whose buckets have it.
class AdamMoments {
 public:
  AdamMoments(const Context& context, const OptimizerConfig& options,
              const std::vector<ParamBucket*>& buckets, const HasState& has_v = {});
  /// With lr = step.lr and the rule's column of step.gains.
  [[nodiscard]] AdamWArgs args(const OptimizerStep& step, const Run& run) const;
  [[nodiscard]] std::vector<TensorView> first() const { return views(m_); }
  [[nodiscard]] std::vector<Optimizer::State> state() const;

 private:
  OptimizerConfig options_;
  std::vector<ParamBucket*> buckets_;
  std::vector<Tensor> m_, v_;
};

[[nodiscard]] std::unique_ptr<Optimizer> make_adamw(const Context& context,
                                                    const OptimizerConfig& options,
                                                    const std::vector<ParamBucket*>& buckets);
[[nodiscard]] std::unique_ptr<Optimizer> make_sgd(const Context& context,
                                                  const OptimizerConfig& options,
                                                  const std::vector<ParamBucket*>& buckets);
[[nodiscard]] std::unique_ptr<Optimizer> make_lamb(const Context& context,
                                                   const OptimizerConfig& options,
                                                   const std::vector<ParamBucket*>& buckets);
[[nodiscard]] std::unique_ptr<Optimizer> make_muon(const Context& context, const Plan& plan,
                                                   const OptimizerConfig& options,
                                                   const std::vector<ParamBucket*>& buckets);

}  // namespace t3d
