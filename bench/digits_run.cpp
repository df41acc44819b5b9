#include "digits_run.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/adasum_tree.hpp"

namespace t3d::bench {
namespace {

constexpr double kReferenceBatch = 16, kTarget = 0.30, kMomentum = 0.9;
constexpr index_t kWarmup = 20, kCheckEvery = 5, kTestDigits = 1000;

Tensor zeros(const Machine& machine, DType dtype, index_t rows, index_t cols) {
  Tensor tensor(machine.device, dtype, rows, cols, MemoryKind::workspace);
  machine.ops.fill(machine.queue, tensor, 0);
  return tensor;
}

std::vector<Segment> segments_of_model() {
  std::vector<Segment> segments;
  for (std::size_t g = 0; g < DigitsModel::kGroups; ++g)
    segments.push_back(
        {DigitsModel::kOffsets[g], DigitsModel::kOffsets[g + 1], static_cast<index_t>(g)});
  return segments;
}

/// The batch of every replica that takes part in a step.
std::vector<index_t> batches_of(const Members& members, std::uint64_t seed, index_t step) {
  const auto draw = [&](index_t which, index_t choices) {
    constexpr index_t kDraws = 128;
    const float u = random_uniform({seed, stream_of("members")}, step * kDraws + which);
    return static_cast<index_t>(u * static_cast<float>(choices));
  };
  const auto size = static_cast<index_t>(members.batches.size());
  std::vector<index_t> batches;
  const index_t count = members.least + draw(0, members.most - members.least + 1);
  for (index_t i = 0; i < count; ++i) {
    const index_t at = members.draw_batches ? draw(1 + i, size) : i % size;
    batches.push_back(members.batches[static_cast<std::size_t>(at)]);
  }
  return batches;
}

/// All steps' figures of one group.
struct GroupLog {
  std::vector<double> gain, noise_ratio, law;

  void add(double g, double ratio, double total_weight) {
    gain.push_back(g);
    noise_ratio.push_back(ratio);
    law.push_back(adasum::expected_gain(total_weight, ratio));
  }
  [[nodiscard]] GroupFigures figures() const {
    return {median(gain), median(noise_ratio), median(law)};
  }
};

/// The run itself; its state lives as long as the run.
class Run {
 public:
  Run(const Machine& machine, const Training& training, std::uint64_t seed)
      : machine_(machine),
        training_(training),
        seed_(seed),
        model_(machine, seed),
        aggregator_(machine, segments_of_model(), DigitsModel::kGroups),
        momentum_(zeros(machine, DType::f32, 1, DigitsModel::kParameters)),
        gradient_(zeros(machine, DType::f32, 1, DigitsModel::kParameters)),
        test_(machine, kTestDigits),
        logs_(DigitsModel::kGroups) {
    test_.draw(machine, {0, stream_of("test digits")}, 0);
  }

  Outcome train() {
    Outcome outcome;
    while (outcome.steps < training_.cap) {
      step(outcome.steps++);
      if (outcome.steps % kCheckEvery != 0) continue;
      const double loss = model_.loss(test_);
      outcome.reached = loss <= kTarget;
      if (outcome.reached || !std::isfinite(loss)) break;
    }
    for (const GroupLog& log : logs_) outcome.groups.push_back(log.figures());
    return outcome;
  }

 private:
  void step(index_t number) {
    const std::vector<index_t> batches = batches_of(training_.members, seed_, number);
    const index_t total = std::accumulate(batches.begin(), batches.end(), index_t{0});
    Digits digits(machine_, total);
    digits.draw(machine_, {seed_, stream_of("digits")}, drawn_);
    drawn_ += total;
    const Tensor gradients(machine_.device, DType::f32, static_cast<index_t>(batches.size()),
                           DigitsModel::kParameters, MemoryKind::gradients);
    model_.gradients(digits, batches, gradients);
    aggregate(batches, gradients);
    const double warmup =
        std::min(1.0, static_cast<double>(number + 1) / static_cast<double>(kWarmup));
    SgdArgs args;
    args.weight = model_.parameters();
    args.v = momentum_;
    args.grad = gradient_;
    args.lr = training_.lr * warmup;
    args.momentum = kMomentum;
    machine_.ops.sgd(machine_.queue, args);
  }

  void aggregate(const std::vector<index_t>& batches, ConstTensorView gradients) {
    std::vector<double> weights;
    for (const index_t batch : batches)
      weights.push_back(training_.method.weighted ? static_cast<double>(batch) / kReferenceBatch
                                                  : 1.0);
    aggregator_.combine(training_.method.wish, gradients, weights, gradient_);
    const double weight = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (index_t g = 0; g < DigitsModel::kGroups; ++g)
      logs_[static_cast<std::size_t>(g)].add(aggregator_.gain(g), aggregator_.noise_ratio(g),
                                             weight);
  }

  Machine machine_;
  Training training_;
  std::uint64_t seed_;
  DigitsModel model_;
  Aggregator aggregator_;
  Tensor momentum_, gradient_;
  Digits test_;
  std::vector<GroupLog> logs_;
  index_t drawn_ = 0;
};

}  // namespace

Aggregator::Aggregator(const Machine& machine, std::vector<Segment> segments, index_t groups)
    : machine_(machine),
      segments_(std::move(segments)),
      noise_(zeros(machine, DType::f64, groups, 2)),
      gains_(zeros(machine, DType::f64, 1, groups)) {}

void Aggregator::combine(const Wish& wish, ConstTensorView x, const std::vector<double>& weights,
                         TensorView out) {
  const index_t n = x.rows, groups = noise_.rows();
  const Tensor gram = zeros(machine_, DType::f64, groups, adasum::packed_size(n));
  const Tensor coefficients = zeros(machine_, DType::f64, groups, n);
  const Tensor summary = zeros(machine_, DType::f64, 1, adasum_summary::columns + n);
  machine_.ops.gram(machine_.queue, x, segments_, gram);
  machine_.ops.adasum(machine_.queue, {.gram = gram,
                                       .weights = {weights.data(), DType::f64, 1, n},
                                       .rule = wish.rule,
                                       .noise_leaf = wish.noise_leaf,
                                       .noise_decay = wish.noise_decay,
                                       .noise = noise_,
                                       .coefficients = coefficients,
                                       .gains = gains_,
                                       .summary = summary});
  machine_.ops.combine(machine_.queue, x, segments_, coefficients, out);
}

double Aggregator::noise_ratio(index_t group) const {
  const auto* estimate = noise_.view().row_range(group, 1).as<double>();
  return adasum::noise_ratio({estimate[0], estimate[1]});
}

Outcome train(const Machine& machine, const Training& training, std::uint64_t seed) {
  return Run(machine, training, seed).train();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace t3d::bench
