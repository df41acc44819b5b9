#include "train/optimizer.hpp"

#include "core/error.hpp"

namespace t3d {
namespace {

// State buffers of share size, zeroed, one per bucket.
std::vector<Tensor> make_state(const Context& context, const std::vector<ParamBucket*>& buckets) {
  std::vector<Tensor> result;
  result.reserve(buckets.size());
  for (const ParamBucket* bucket : buckets) {
    result.push_back(
        context.make(context.accumulator(), 1, bucket->shard_count(), MemoryKind::optimizer));
    context.ops.fill(context.queue, result.back(), 0);
  }
  return result;
}

std::vector<TensorView> views(std::vector<Tensor>& tensors) {
  std::vector<TensorView> result;
  result.reserve(tensors.size());
  for (Tensor& tensor : tensors) result.push_back(tensor.view());
  return result;
}

// Calls visit(bucket number, first, count, decays) for each run of the share with one decay rule:
// neighbouring entries with the same rule are one run (a GPU pays for every launch).
template <class Visit>
void for_each_range(const std::vector<ParamBucket*>& buckets, Visit&& visit) {
  for (std::size_t number = 0; number < buckets.size(); ++number) {
    index_t begin = 0, end = 0;
    bool decays = false;
    for (const ParamEntry& entry : buckets[number]->entries()) {
      const auto [first, last] = buckets[number]->shard_range(entry);
      if (first >= last) continue;
      if (begin < end && first == end && entry.decay == decays) {
        end = last;
        continue;
      }
      if (begin < end) visit(number, begin, end - begin, decays);
      begin = first;
      end = last;
      decays = entry.decay;
    }
    if (begin < end) visit(number, begin, end - begin, decays);
  }
}

class AdamW final : public Optimizer {
 public:
  AdamW(const Context& context, const OptimizerConfig& options,
        const std::vector<ParamBucket*>& buckets)
      : context_(context),
        options_(options),
        buckets_(buckets),
        m_(make_state(context, buckets)),
        v_(make_state(context, buckets)) {}

  void update(index_t step, double lr, double grad_scale, ConstTensorView factor) override {
    for_each_range(buckets_, [&](std::size_t at, index_t first, index_t n, bool decays) {
      AdamWArgs args;
      args.weight = buckets_[at]->master().col_range(first, n);
      args.m = m_[at].view().col_range(first, n);
      args.v = v_[at].view().col_range(first, n);
      args.grad = buckets_[at]->gradient_shard().col_range(first, n);
      args.lr = lr;
      args.beta1 = options_.beta1;
      args.beta2 = options_.beta2;
      args.eps = options_.eps;
      args.decay = decays ? options_.weight_decay : 0;
      args.grad_scale = grad_scale;
      args.device_scale = factor;
      args.step = step;
      context_.ops.adamw(context_.queue, args);
    });
  }
  std::vector<State> state() override { return {{"m", views(m_)}, {"v", views(v_)}}; }

 private:
  const Context& context_;
  OptimizerConfig options_;
  std::vector<ParamBucket*> buckets_;
  std::vector<Tensor> m_, v_;
};

class Sgd final : public Optimizer {
 public:
  Sgd(const Context& context, const OptimizerConfig& options,
      const std::vector<ParamBucket*>& buckets)
      : context_(context), options_(options), buckets_(buckets), v_(make_state(context, buckets)) {}

  void update(index_t, double lr, double grad_scale, ConstTensorView factor) override {
    for_each_range(buckets_, [&](std::size_t at, index_t first, index_t n, bool decays) {
      SgdArgs args;
      args.weight = buckets_[at]->master().col_range(first, n);
      args.v = v_[at].view().col_range(first, n);
      args.grad = buckets_[at]->gradient_shard().col_range(first, n);
      args.lr = lr;
      args.momentum = options_.momentum;
      args.decay = decays ? options_.weight_decay : 0;
      args.grad_scale = grad_scale;
      args.device_scale = factor;
      args.nesterov = options_.nesterov;
      context_.ops.sgd(context_.queue, args);
    });
  }
  std::vector<State> state() override { return {{"momentum", views(v_)}}; }

 private:
  const Context& context_;
  OptimizerConfig options_;
  std::vector<ParamBucket*> buckets_;
  std::vector<Tensor> v_;
};

}  // namespace

std::unique_ptr<Optimizer> make_optimizer(const Context& context, const OptimizerConfig& options,
                                          const std::vector<ParamBucket*>& buckets) {
  if (options.kind == "sgd") return std::make_unique<Sgd>(context, options, buckets);
  T3D_CHECK(options.kind == "adamw", "optimizer {}", options.kind);
  return std::make_unique<AdamW>(context, options, buckets);
}

void add_gradient_squares(const Context& context, const std::vector<ParamBucket*>& buckets,
                          TensorView result) {
  for (ParamBucket* bucket : buckets)
    context.ops.sum_squares(context.queue, bucket->gradient_shard(), result);
}

}  // namespace t3d
