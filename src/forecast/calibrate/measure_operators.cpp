#include "forecast/calibrate/measure_operators.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/phase_clock.hpp"
#include "core/robust.hpp"
#include "forecast/calibrate/operator_run.hpp"
#include "forecast/cluster/sample_spread.hpp"
#include "hetero/speed/probe_numbers.hpp"
#include "hetero/speed/sampler.hpp"

namespace t3d {
namespace {

/// Part of the time, and how many shapes get it where there is enough.
struct KindShare {
  OperatorKind kind;
  double part;
  std::size_t shapes;
};
constexpr std::array<KindShare, kOperatorKinds> kShares{{
    {OperatorKind::matmul, 0.6, 192},
    {OperatorKind::attention_forward, 0.08, 36},
    {OperatorKind::attention_backward, 0.09, 36},
    {OperatorKind::whole, 0.05, 16},
    {OperatorKind::norm, 0.03, 12},
    {OperatorKind::activation, 0.03, 12},
    {OperatorKind::residual, 0.03, 12},
    {OperatorKind::loss, 0.03, 12},
    {OperatorKind::embedding, 0.03, 12},
    {OperatorKind::optimizer, 0.03, 12},
}};
/// Seconds for one shape: fewer shapes before less than the first, but a few in any case, and more
/// than those only where each gets the second.
constexpr double kLeast = 0.03, kEnough = 0.3;
constexpr std::size_t kFewest = 3, kFew = 24;
constexpr double kCalls = 12;  // of the longest shape in its time
/// Bytes of operands that are made in a second, about, and how much of the time that may take; sets
/// of operands together are more than caches hold, where there is time for that.
constexpr double kMadePerSecond = 2e9, kMaking = 0.25, kFootprint = 64 << 20;

class KindMeasurement {
 public:
  KindMeasurement(const ProbeMachine& machine, ComputeType compute, const KindShare& share,
                  const OperatorBudget& budget, const OperatorHooks& hooks)
      : machine_(machine),
        compute_(compute),
        kind_(share.kind),
        budget_(budget),
        hooks_(hooks),
        seconds_(share.part * budget.seconds) {
    const auto shapes = [&](double each) { return static_cast<std::size_t>(seconds_ / each); };
    shapes_wished_ = std::clamp(shapes(kLeast), kFewest, std::min(kFew, share.shapes));
    shapes_wished_ = std::clamp(shapes(kEnough), shapes_wished_, share.shapes);
    made_bytes_ = kMaking * kMadePerSecond * seconds_ / static_cast<double>(shapes_wished_);
  }

  /// Collective by way of the hooks, whatever fails: all ranks of a class go through all shapes.
  std::vector<Sample> measure(std::string& fault) {
    const double each = seconds_ / static_cast<double>(shapes_wished_);
    const ShapeLimits most{hooks_.least(affordable_work(each / kCalls, fault)), most_bytes()};
    const std::vector<OperatorShape> shapes = operator_shapes(kind_, shapes_wished_, most);
    std::vector<Sample> samples;
    for (const OperatorShape& shape : shapes) {
      hooks_.together();
      if (!fault.empty()) continue;
      const double start = PhaseClock::now();
      try {
        machine_.device.recycle();  // pages of the shape before: touching new ones takes longer
        samples.push_back(measure_one(shape, start + each));
      } catch (const std::exception& error) {
        fault = fmt::format("{}: {}", word_of(kind_), error.what());
      }
    }
    return samples;
  }

 private:
  /// Of operands, in fp32. The same on all ranks of a class.
  [[nodiscard]] double most_bytes() const {
    constexpr double kRoom = 4;  // what operators need besides their operands, and several sets
    const double free = static_cast<double>(budget_.bytes) / kRoom;
    return budget_.bytes == 0 ? made_bytes_ : std::min(made_bytes_, free);
  }

  /// Of the kind's second term in so many seconds; something where it fails. From small to large:
  /// on a GPU small ones show what a call takes, not what it does.
  double affordable_work(double seconds, std::string& fault) const {
    constexpr double kFirst = 0.02, kGrowth = 8;
    constexpr int kMostDoublings = 8;
    const std::size_t columns = form_of(kind_).columns.size();
    double affordable = 0;
    for (int doublings = 0; doublings <= kMostDoublings; ++doublings) {
      const OperatorShape shape = first_shape(kind_, doublings);
      const double work = term_counts(kind_, std::span(shape).first(columns))[1];
      if (doublings > 0 && operand_bytes(kind_, size_of(DType::f32), shape) > most_bytes()) break;
      try {
        const auto run = operator_run(machine_, kind_, compute_, shape, 0);
        const Sampled one =
            sample(machine_.queue, run, kFirst, {0.1, 1e-4, 1e-3, budget_.cpu_time, rest()});
        affordable = work * seconds / one.seconds;
        if (kGrowth * one.seconds > seconds) break;
      } catch (const std::exception& error) {
        fault = fmt::format("{}: {}", word_of(kind_), error.what());
        return work;
      }
    }
    return affordable;
  }

  [[nodiscard]] double rest() const { return budget_.slowdown - 1; }

  Sample measure_one(const OperatorShape& shape, double end) const {
    const double footprint = kind_ == OperatorKind::optimizer ? 4 * kFootprint : kFootprint;
    const auto run =
        operator_run(machine_, kind_, compute_, shape, std::min(footprint, made_bytes_));
    const double seconds = std::max(0.0, end - PhaseClock::now());
    // All of the time: a rank that ends early leaves its neighbours a faster memory.
    const Sampled one =
        sample(machine_.queue, run, seconds, {0, 2e-3, 0.1, budget_.cpu_time, rest()});
    const double slowed = budget_.slowdown * one.seconds;
    return {shape, slowed, slowed * one.error};
  }

  const ProbeMachine& machine_;
  ComputeType compute_;
  OperatorKind kind_;
  const OperatorBudget& budget_;
  const OperatorHooks& hooks_;
  double seconds_, made_bytes_ = 0;
  std::size_t shapes_wished_;
};

}  // namespace

std::vector<OperatorTable> measure_operators(const ProbeMachine& machine, ComputeType compute,
                                             const OperatorBudget& budget,
                                             const OperatorHooks& hooks,
                                             std::vector<std::string>& faults) {
  std::vector<OperatorTable> tables;
  for (const KindShare& share : kShares) {
    std::string fault;
    tables.push_back({share.kind, compute, {}, {}});
    const auto measure = [&] {
      return KindMeasurement(machine, compute, share, budget, hooks).measure(fault);
    };
    std::vector<Sample>& samples = tables.back().samples;
    samples = measure();
    // All ranks of the class once more where one of them spreads: something was in the way.
    if (hooks.least(spreads_widely(samples) ? 0 : 1) == 0)
      samples = better_samples(std::move(samples), measure());
    if (!fault.empty()) faults.push_back(std::move(fault));
  }
  machine.device.trim();
  machine.device.restart_peaks();
  return tables;
}

std::pair<double, double> measure_launch(const ProbeMachine& machine, double slowdown) {
  constexpr int kCalls = 200, kSamples = 15;
  const Tensor a = probe_numbers(machine, DType::f32, 1, 16),
               b = probe_numbers(machine, DType::f32, 1, 16);
  std::vector<double> times;
  for (int sample = 0; sample < kSamples; ++sample) {
    machine.queue.synchronize();
    const double start = PhaseClock::now();
    for (int call = 0; call < kCalls; ++call) machine.ops.copy(machine.queue, a, b);
    times.push_back(slowdown * (PhaseClock::now() - start) /
                    kCalls);  // without waiting for the device
    machine.queue.synchronize();
  }
  return {median_of(std::span<const double>(times)), median_error_of(times)};
}

std::vector<Sample> median_samples(const std::vector<std::vector<Sample>>& ranks) {
  std::vector<Sample> medians;
  if (ranks.empty()) return medians;
  for (const Sample& first : ranks.front()) {
    std::vector<double> seconds, errors;
    for (const std::vector<Sample>& rank : ranks) {
      const auto same = std::find_if(rank.begin(), rank.end(),
                                     [&](const Sample& one) { return one.shape == first.shape; });
      if (same == rank.end()) continue;
      seconds.push_back(same->seconds);
      errors.push_back(same->error);
    }
    if (seconds.size() < ranks.size()) continue;
    const double own = median_of(std::move(errors)) / std::sqrt(static_cast<double>(ranks.size()));
    const double between = median_error_of(seconds);
    medians.push_back({first.shape, median_of(std::move(seconds)), std::max(own, between)});
  }
  return medians;
}

}  // namespace t3d
