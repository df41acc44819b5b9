#include "forecast/calibrate/measure_collectives.hpp"

#include <algorithm>
#include <cmath>

#include "comm/cost.hpp"
#include "forecast/calibrate/measure_operators.hpp"
#include "forecast/cluster/sampled_fit.hpp"
#include "hetero/speed/group_timer.hpp"

namespace t3d {
namespace {

constexpr index_t kSmallest = 1024, kGrowth = 2;  // bytes of a rank's part
constexpr int kSamples = 9;
/// Where the time is over: few samples of sizes far apart, up to this one, so that bytes are known.
constexpr index_t kLeastLargest = index_t{512} << 10, kLateGrowth = 8;
constexpr int kLateSamples = 3;
constexpr double kShortest = 1e-3;  // seconds of a sample
constexpr int kMostCalls = 100;
/// A step's messages are in other buffers each time: calls go through as much as caches hold.
constexpr index_t kFootprint = index_t{64} << 20;

/// One verb at one size of a member's part, on buffers that all sizes share.
class VerbRun {
 public:
  VerbRun(Communicator& group, Verb verb, TensorView buffer, index_t bytes)
      : group_(group),
        verb_(verb),
        counts_(static_cast<std::size_t>(group.size()), bytes / size_of(DType::f32)),
        places_(std::max<index_t>(1, std::min(kFootprint, buffer.bytes()) / (bytes * members()))),
        buffers_{buffer.data, DType::f32, places_ * members(), counts_.front()} {}

  void start(Queue& queue) {
    const TensorView whole = buffers_.row_range(next_ * members(), members()),
                     part = whole.row_range(group_.rank(), 1);
    next_ = (next_ + 1) % places_;
    switch (verb_) {
      case Verb::all_gather: return group_.all_gather(part, whole, counts_).wait(queue);
      case Verb::reduce_scatter: return group_.reduce_scatter(whole, part, counts_).wait(queue);
      case Verb::all_reduce: return group_.all_reduce(whole, ReduceOp::sum).wait(queue);
      default: return group_.broadcast(whole, 0).wait(queue);
    }
  }
  /// That the rank sends which sends most.
  [[nodiscard]] index_t bytes_sent() const {
    const index_t count = members() * counts_.front();
    switch (verb_) {
      case Verb::all_gather: return all_gather_bytes(counts_, 0, DType::f32);
      case Verb::reduce_scatter: return reduce_scatter_bytes(counts_, 0, DType::f32);
      case Verb::all_reduce: return all_reduce_bytes(count, members(), 0, DType::f32);
      default: return broadcast_bytes(count, members(), 0, 0, DType::f32);
    }
  }

 private:
  [[nodiscard]] int members() const { return group_.size(); }

  Communicator& group_;
  Verb verb_;
  std::vector<index_t> counts_;
  index_t places_, next_ = 0;
  TensorView buffers_;  // [places x members, count]
};

/// Those of equal shape become one: the median of the groups.
std::vector<Sample> by_shape(const std::vector<Sample>& samples) {
  std::vector<Sample> merged;
  for (const Sample& first : samples) {
    if (std::any_of(merged.begin(), merged.end(),
                    [&](const Sample& one) { return one.shape == first.shape; }))
      continue;
    std::vector<std::vector<Sample>> groups;
    for (const Sample& one : samples)
      if (one.shape == first.shape) groups.push_back({one});
    merged.push_back(median_samples(groups).front());
  }
  return merged;
}

}  // namespace

GroupCollectives::GroupCollectives(const ProbeMachine& machine, int members,
                                   const CollectiveBudget& budget)
    : machine_(machine),
      budget_(budget),
      number_(machine.device, DType::f64, 1, 1, MemoryKind::workspace) {
  budget_.bytes = std::max(budget.bytes, kSmallest * members);
  whole_ = Tensor(machine.device, DType::f32, 1, budget_.bytes / size_of(DType::f32),
                  MemoryKind::workspace);
  machine.ops.fill(machine.queue, whole_, 0);  // sums of sums stay numbers
}

VerbSamples GroupCollectives::measure(Communicator& group, index_t groups) {
  VerbSamples samples;
  GroupTimer timer(machine_, group, number_);
  // Members on nodes with more memory must not go on to sizes that the others leave out.
  budget_.bytes = static_cast<index_t>(-timer.largest(-static_cast<double>(budget_.bytes)));
  for (std::size_t at = 0; at < kLevelVerbs.size(); ++at) {
    const double budget = budget_.seconds / kLevelVerbs.size();
    double spent = 0, next = 0;
    index_t growth = kGrowth;
    for (index_t bytes = kSmallest; bytes * group.size() <= budget_.bytes; bytes *= growth) {
      const bool late = spent + next > budget && samples[at].size() >= 2;
      if (late && bytes > kLeastLargest) break;
      growth = late ? kLateGrowth : kGrowth;
      VerbRun run(group, kLevelVerbs[at], whole_, bytes);
      const auto body = [&] { run.start(machine_.queue); };
      const double once = timer.seconds(body, 1).seconds;
      const int calls =
          std::clamp(static_cast<int>(kShortest / std::max(once, 1e-9)), 1, kMostCalls);
      const Sampled one = timer.seconds(body, late ? kLateSamples : kSamples, late ? 1 : calls);
      samples[at].push_back({{static_cast<double>(group.size() - 1),
                              static_cast<double>(run.bytes_sent()), static_cast<double>(groups)},
                             one.seconds,
                             one.seconds * one.error});
      const double here = 3 * once + kSamples * calls * one.seconds;
      spent += here;
      next = calls > 1 ? here : kGrowth * here;
    }
  }
  return samples;
}

void set_measured(const VerbSamples& samples, Level& level) {
  level.collectives.clear();
  const TableForm form = collective_form();
  double count = 0;
  level.alpha_seconds = level.alpha_seconds_error = 0;
  level.beta_seconds_per_byte = level.beta_seconds_per_byte_error = 0;
  double further = 0, further_error = 0;
  level.groups_together = 0;
  for (std::size_t at = 0; at < kLevelVerbs.size(); ++at) {
    const Verb verb = kLevelVerbs[at];
    if (samples[at].empty()) continue;
    CollectiveTable table{verb, {}, by_shape(samples[at])};
    table.fit = SampledFit::of_samples(table.samples, form, [verb](std::span<const double> shape) {
      return term_counts(verb, shape);
    });
    for (const Sample& sample : table.samples)
      level.groups_together =
          std::max(level.groups_together, static_cast<index_t>(sample.shape[2]));
    // What steps do most of stands for all.
    if (verb == Verb::all_gather || verb == Verb::reduce_scatter) {
      const auto& [of, terms, errors] = table.fit;
      ++count;
      level.alpha_seconds += terms[0];
      level.alpha_seconds_error += errors[0];
      level.beta_seconds_per_byte += terms[1];
      level.beta_seconds_per_byte_error += errors[1];
      further += terms[2];
      further_error += errors[2];
    }
    level.collectives.push_back(std::move(table));
  }
  if (count == 0) return;
  for (double* sum :
       {&level.alpha_seconds, &level.alpha_seconds_error, &level.beta_seconds_per_byte,
        &level.beta_seconds_per_byte_error, &further, &further_error})
    *sum /= count;
  if (level.groups_together < 2) {
    level.groups_together = 0;
    level.beta_together_seconds_per_byte = level.beta_together_seconds_per_byte_error = 0;
    return;
  }
  const auto more = static_cast<double>(level.groups_together - 1);
  level.beta_together_seconds_per_byte = level.beta_seconds_per_byte + more * further;
  level.beta_together_seconds_per_byte_error =
      std::hypot(level.beta_seconds_per_byte_error, more * further_error);
}

}  // namespace t3d
