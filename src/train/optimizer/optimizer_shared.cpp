#include "train/optimizer/optimizer_shared.hpp"

namespace t3d {

ConstTensorView factor_of(ConstTensorView table, const Rule& rule) {
  return rule.column == Rule::kNone ? ConstTensorView() : table.col_range(rule.column, 1);
}

std::vector<Run> runs_of(const std::vector<ParamBucket*>& buckets, const RuleOf& rule_of) {
  std::vector<Run> runs;
  for (std::size_t number = 0; number < buckets.size(); ++number) {
    if (buckets[number]->frozen()) continue;
    const std::vector<ParamEntry>& entries = buckets[number]->entries();
    for (std::size_t at = 0; at < entries.size(); ++at) {
      const std::optional<Rule> rule = rule_of(number, at);
      const auto [first, last] = buckets[number]->shard_range(entries[at]);
      if (!rule || first >= last) continue;
      const bool joins = !runs.empty() && runs.back().bucket == number &&
                         runs.back().first + runs.back().count == first &&
                         runs.back().rule == *rule;
      if (joins)
        runs.back().count += last - first;
      else
        runs.push_back({number, first, last - first, *rule});
    }
  }
  return runs;
}

Rule gain_rule(const std::vector<ParamBucket*>& buckets, const OptimizerStep& step,
               std::size_t bucket, std::size_t entry) {
  const bool gains = step.gains.data != nullptr;
  return {buckets[bucket]->entries()[entry].decay,
          gains ? step.groups->of(bucket, entry) : Rule::kNone};
}

AdamMoments::AdamMoments(const Context& context, const OptimizerConfig& options,
                         const std::vector<ParamBucket*>& buckets, const HasState& has_v)
    : options_(options),
      buckets_(buckets),
      m_("m", context, buckets),
      v_("v", context, buckets, has_v) {}

AdamWArgs AdamMoments::args(const OptimizerStep& step, const Run& run) const {
  AdamWArgs args;
  args.weight = run.in(buckets_[run.bucket]->master());
  args.m = run.in(m_[run.bucket]);
  args.v = run.in(v_[run.bucket]);
  args.grad = run.in(buckets_[run.bucket]->gradient_shard());
  args.lr = step.lr;
  args.beta1 = options_.beta1;
  args.beta2 = options_.beta2;
  args.eps = options_.eps;
  args.decay = run.rule.decays ? options_.weight_decay : 0;
  args.grad_scale = step.grad_scale;
  args.device_scale = step.factor;
  args.device_lr = factor_of(step.gains, run.rule);
  args.step = step.number;
  return args;
}

}  // namespace t3d
