// AdamW and SGD: every element by itself, so nothing is sent.
#include "train/optimizer/optimizer_shared.hpp"

namespace t3d {
namespace {

class AdamW final : public Optimizer {
 public:
  AdamW(const Context& context, const OptimizerConfig& options,
        const std::vector<ParamBucket*>& buckets)
      : context_(context), buckets_(buckets), moments_(context, options, buckets) {}

  void update(const OptimizerStep& step) override {
    const auto rule_of = [&](std::size_t bucket, std::size_t entry) {
      return gain_rule(buckets_, step, bucket, entry);
    };
    for (const Run& run : runs_of(buckets_, rule_of))
      context_.ops.adamw(context_.queue, moments_.args(step, run));
  }
  std::vector<StateBuffers*> state() override { return moments_.state(); }

 private:
  const Context& context_;
  std::vector<ParamBucket*> buckets_;
  AdamMoments moments_;
};

class Sgd final : public Optimizer {
 public:
  Sgd(const Context& context, const OptimizerConfig& options,
      const std::vector<ParamBucket*>& buckets)
      : context_(context), options_(options), buckets_(buckets), v_("momentum", context, buckets) {}

  void update(const OptimizerStep& step) override {
    const auto rule_of = [&](std::size_t bucket, std::size_t entry) {
      return gain_rule(buckets_, step, bucket, entry);
    };
    for (const Run& run : runs_of(buckets_, rule_of)) {
      SgdArgs args;
      args.weight = run.in(buckets_[run.bucket]->master());
      args.v = run.in(v_[run.bucket]);
      args.grad = run.in(buckets_[run.bucket]->gradient_shard());
      args.lr = step.lr;
      args.momentum = options_.momentum_or_default();
      args.decay = run.rule.decays ? options_.weight_decay : 0;
      args.grad_scale = step.grad_scale;
      args.device_scale = step.factor;
      args.device_lr = factor_of(step.gains, run.rule);
      args.nesterov = options_.nesterov;
      context_.ops.sgd(context_.queue, args);
    }
  }
  std::vector<StateBuffers*> state() override { return {&v_}; }

 private:
  const Context& context_;
  OptimizerConfig options_;
  std::vector<ParamBucket*> buckets_;
  StateBuffers v_;
};

}  // namespace

std::unique_ptr<Optimizer> make_adamw(const Context& context, const OptimizerConfig& options,
                                      const std::vector<ParamBucket*>& buckets) {
  return std::make_unique<AdamW>(context, options, buckets);
}

std::unique_ptr<Optimizer> make_sgd(const Context& context, const OptimizerConfig& options,
                                    const std::vector<ParamBucket*>& buckets) {
  return std::make_unique<Sgd>(context, options, buckets);
}

}  // namespace t3d
