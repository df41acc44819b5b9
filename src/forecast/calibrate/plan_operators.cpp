#include "forecast/calibrate/plan_operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <tuple>

#include "core/choices.hpp"
#include "forecast/calibrate/operator_run.hpp"
#include "forecast/cluster/operator_terms.hpp"
#include "hetero/speed/sampler.hpp"

namespace t3d {
namespace {

constexpr double kFootprint = 32 << 20;  // of sets of operands in turns
constexpr double kLongProduct = 0.05;    // seconds
constexpr double kUncertain = 0.1;       // of a rate, relative

/// Flops of an element, and numbers that are read and written for it (operator_run.cpp).
struct StreamWork {
  double flops, numbers;
};
StreamWork stream_work(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::norm: return {24, 8};
    case OperatorKind::activation: return {28, 5};
    case OperatorKind::residual: return {1, 3};
    case OperatorKind::loss: return {8, 3};
    case OperatorKind::embedding: return {1, 5};
    case OperatorKind::optimizer: return {15, 7};
    default: return {0, 1};
  }
}

double matmul_bytes(const OperatorShape& shape, double act, double acc) {
  const double m = shape[0], n = shape[1], k = shape[2];
  const bool adds = shape[3] != 0;  // gradients of weights are summed up
  return act * (m * k + k * n) + (adds ? 2 * acc : act) * m * n;
}

/// Forward reads queries, keys and values, and writes the output and a number per row of a head;
/// backward reads all that and the output's gradient, and writes three gradients.
double attention_bytes(const OperatorShape& shape, double act, double acc, bool backward) {
  const double rows = shape[0] * shape[1], heads = shape[2], kv_heads = shape[3], size = shape[4];
  const double in = rows * (heads + 2 * kv_heads) * size, out = rows * heads * size;
  return act * (backward ? 2 * in + 2 * out : in + out) + acc * rows * heads;
}

double work_of_call(const OperatorCall& call, ComputeType compute) {
  const OperatorCounts counts = counts_of(call.kind, compute, call.shape);
  return call.times * (counts.flops + 4 * counts.bytes);  // a byte takes as long as some flops
}

class Measurement {
 public:
  Measurement(const ProbeMachine& machine, ComputeType compute, const PlanOperatorBudget& budget)
      : machine_(machine), compute_(compute), budget_(budget) {}

  /// Nothing where it fails; `notes` say why.
  [[nodiscard]] Sampled time(OperatorKind kind, const OperatorShape& shape, double footprint,
                             std::vector<std::string>& notes) const {
    try {
      machine_.device.recycle();  // pages of the shape before: touching new ones takes longer
      const auto run = operator_run(machine_, kind, compute_, shape, footprint);
      Sampled one =
          sample(machine_.queue, run, budget_.seconds, {0.005, 2e-3, 0.1, budget_.cpu_time});
      one.seconds *= budget_.dilation;
      return one;
    } catch (const std::exception& error) {
      notes.push_back(fmt::format("{} was not measured: {}", word_of(kind), error.what()));
      return {};
    }
  }

  /// Of square products, larger and larger until one takes long.
  [[nodiscard]] double square_rate(std::vector<std::string>& notes) const {
    constexpr double kSmallest = 256, kLargest = 8192;
    double best = 0;
    for (double size = kSmallest; size <= kLargest; size *= 2) {
      const OperatorShape shape{size, size, size, 0, 1};
      if (counts_of(OperatorKind::matmul, compute_, shape).bytes > 4 * budget_.bytes) break;
      const Sampled one = time(OperatorKind::matmul, shape, 0, notes);
      if (one.seconds <= 0) break;
      best = std::max(best, 2 * size * size * size / one.seconds);
      if (one.seconds > kLongProduct) break;
    }
    return best;
  }

  [[nodiscard]] double stream_rate(std::vector<std::string>& notes) const {
    const Sampled one = time(OperatorKind::residual, {budget_.stream_bytes}, 0, notes);
    if (one.seconds > 0 && one.error > kUncertain)
      notes.push_back(fmt::format("the rate of streams is known to {:.0f} % only: too few calls",
                                  100 * one.error));
    return one.seconds > 0 ? budget_.stream_bytes / one.seconds : 0;
  }

 private:
  const ProbeMachine& machine_;
  ComputeType compute_;
  const PlanOperatorBudget& budget_;
};

/// Those with most work, as many as the budget has; what is too large is left out.
std::vector<OperatorCall> affordable(std::vector<OperatorCall> calls, ComputeType compute,
                                     const PlanOperatorBudget& budget,
                                     std::vector<std::string>& notes) {
  const auto too_large = [&](const OperatorCall& call) {
    const auto size = static_cast<double>(size_of(activation_of(compute)));
    return operand_bytes(call.kind, size, call.shape) > budget.bytes && form_of(call.kind).computes;
  };
  if (const auto count = std::erase_if(calls, too_large); count > 0)
    notes.push_back(fmt::format("{} shapes with operands above {} MiB were not measured", count,
                                budget.bytes / (1 << 20)));
  std::stable_sort(calls.begin(), calls.end(), [&](const OperatorCall& a, const OperatorCall& b) {
    return work_of_call(a, compute) > work_of_call(b, compute);
  });
  if (calls.size() > budget.shapes) {
    notes.push_back(fmt::format("{} shapes with less work than those shown were not measured",
                                calls.size() - budget.shapes));
    calls.resize(budget.shapes);
  }
  std::stable_sort(calls.begin(), calls.end(), [](const OperatorCall& a, const OperatorCall& b) {
    return std::tie(a.kind, a.shape) < std::tie(b.kind, b.shape);
  });
  return calls;
}

}  // namespace

OperatorCounts counts_of(OperatorKind kind, ComputeType compute, const OperatorShape& shape) {
  const DType type = activation_of(compute);
  const auto act = static_cast<double>(size_of(type)),
             acc = static_cast<double>(size_of(accumulator_of(type)));
  const TableForm form = form_of(kind);
  const double work = term_counts(kind, std::span(shape).first(form.columns.size()))[1];
  switch (kind) {
    case OperatorKind::matmul: return {work, matmul_bytes(shape, act, acc)};
    case OperatorKind::attention_forward: return {work, attention_bytes(shape, act, acc, false)};
    case OperatorKind::attention_backward: return {work, attention_bytes(shape, act, acc, true)};
    case OperatorKind::whole: return {work, 2 * acc * shape[0] * shape[1]};
    default: break;
  }
  const StreamWork each = stream_work(kind);
  const double size = kind == OperatorKind::optimizer ? acc : act;
  return {work / (each.numbers * size) * each.flops, work};
}

PlanOperators measure_plan_operators(const ProbeMachine& machine, ComputeType compute,
                                     std::vector<OperatorCall> calls,
                                     const PlanOperatorBudget& budget,
                                     const std::function<void()>& together) {
  PlanOperators found;
  const Measurement measurement(machine, compute, budget);
  std::vector<std::string> unheard;
  (void)measurement.time(OperatorKind::matmul, {64, 64, 64, 0, 0}, 0, unheard);  // starts libraries
  for (const OperatorCall& call : affordable(std::move(calls), compute, budget, found.notes)) {
    together();
    const Sampled one = measurement.time(call.kind, call.shape, kFootprint, found.notes);
    const OperatorCounts counts = counts_of(call.kind, compute, call.shape);
    if (one.seconds <= 0) continue;
    found.operators.push_back({call, counts, one.seconds, one.error});
    if (call.kind == OperatorKind::matmul)
      found.matmul_rate = std::max(found.matmul_rate, counts.flops / one.seconds);
  }
  together();
  found.matmul_rate = std::max(found.matmul_rate, measurement.square_rate(found.notes));
  together();
  found.stream_rate = measurement.stream_rate(found.notes);
  machine.device.trim();
  machine.device.restart_peaks();
  return found;
}

}  // namespace t3d
