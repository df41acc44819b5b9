// What the optimizers have in common: runs of elements with one rule, Adam's moments,
// and who makes which kind.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "train/optimizer/optimizer.hpp"

namespace t3d {

/// How an entry is treated: whether it decays, and which column of a [1,n] table of factors is its.
struct Rule {
  static constexpr index_t kNone = -1;
  bool decays = false;
  index_t column = kNone;  // kNone: factor 1
  friend bool operator==(const Rule&, const Rule&) = default;
};
/// The factor [1,1] of a rule; empty data = 1.
[[nodiscard]] ConstTensorView factor_of(ConstTensorView table, const Rule& rule);

/// Elements [first, first + count) of this rank's shard of a bucket have one rule.
struct Run {
  std::size_t bucket = 0;
  index_t first = 0, count = 0;
  Rule rule;
  [[nodiscard]] TensorView in(TensorView shard) const { return shard.col_range(first, count); }
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
  [[nodiscard]] std::vector<TensorView> first() const { return m_.views(); }
  [[nodiscard]] std::vector<StateBuffers*> state() { return {&m_, &v_}; }

 private:
  OptimizerConfig options_;
  std::vector<ParamBucket*> buckets_;
  StateBuffers m_, v_;
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
