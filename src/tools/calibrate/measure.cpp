#include "tools/calibrate/measure.hpp"

#include <algorithm>
#include <cmath>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "core/plan.hpp"
#include "core/robust.hpp"
#include "forecast/calibrate/measure_collectives.hpp"
#include "forecast/calibrate/measure_jitter.hpp"
#include "forecast/calibrate/measure_operators.hpp"
#include "forecast/cluster/sample_spread.hpp"
#include "forecast/cluster/sampled_fit.hpp"
#include "io/file_rate.hpp"
#include "run/setup.hpp"
#include "train/probe/machine_probe.hpp"

namespace t3d {
namespace {

/// A number that all ranks have, by this rule.
double reduced(Communicator& group, double number, ReduceOp op) {
  group.all_reduce({&number, DType::f64, 1, 1}, op).wait_host();
  return number;
}

/// The ranks of this rank's class.
std::vector<int> classmates(const JobClasses& job, int rank) {
  std::vector<int> ranks;
  for (std::size_t other = 0; other < job.class_of_ranks.size(); ++other)
    if (job.class_of_ranks[other] == job.class_of_ranks[static_cast<std::size_t>(rank)])
      ranks.push_back(static_cast<int>(other));
  return ranks;
}

}  // namespace

void measure_format(Machine& machine, ComputeType compute, const JobClasses& job, double seconds,
                    NodeClass& own, std::vector<std::string>& notes) {
  Communicator& world = machine.world();
  const auto peers = world.subgroup(classmates(job, world.rank()), "class");
  OperatorHooks hooks;
  hooks.together = [&] { peers->barrier(); };
  hooks.least = [&](double number) { return -reduced(*peers, -number, ReduceOp::max); };
  const bool on_cpu = machine.choice().gpu < 0;
  OperatorBudget budget;
  budget.seconds = seconds;
  budget.bytes = own.memory_bytes / 2;
  // One thread's own time is what its core takes, whoever else has the core now and then.
  budget.cpu_time = on_cpu && machine.threads() == 1;
  budget.slowdown = job.slowdown[static_cast<std::size_t>(world.rank())];
  std::vector<std::string> faults;
  with_probe_machine(machine, activation_of(compute), [&](const ProbeMachine& means) {
    if (own.launch_seconds == 0)
      std::tie(own.launch_seconds, own.launch_seconds_error) =
          measure_launch(means, budget.slowdown);
    for (OperatorTable& table : measure_operators(means, compute, budget, hooks, faults))
      if (!table.samples.empty()) own.operators.push_back(std::move(table));
  });
  for (const std::string& fault : faults)
    notes.push_back(fmt::format("{} {} of rank {}: {}", own.name, compute, world.rank(), fault));
}

void measure_meetings(Machine& machine, const JobClasses& job, double seconds, NodeClass& own) {
  Communicator& world = machine.world();
  const double slowdown = job.slowdown[static_cast<std::size_t>(world.rank())];
  const auto peers = machine.device_world().subgroup(classmates(job, world.rank()), "class");
  const ProbeMachine means{machine.device(), machine.ops(), machine.queue(), {}};
  world.set_slowdown(slowdown);
  const MeasuredJitter found = measure_jitter(means, *peers, seconds, slowdown);
  own.jitter = found.jitter.relative;
  own.jitter_exponent = found.jitter.exponent;
  own.jitter_error = found.error;
  world.set_slowdown(1);
  world.barrier();
}

void measure_levels(Machine& machine, const JobClasses& job, double seconds,
                    std::vector<Level>& own, std::vector<std::string>& notes) {
  Communicator& world = machine.world();
  world.set_slowdown(job.slowdown[static_cast<std::size_t>(world.rank())]);
  const ProbeMachine means{machine.device(), machine.ops(), machine.queue(), {}};
  const std::vector<GroupPhase> phases = group_phases(job);
  const auto has_level = [&](const char* name) {
    return std::any_of(phases.begin(), phases.end(),
                       [&](const GroupPhase& phase) { return phase.level == name; });
  };
  if (!has_level("node")) notes.emplace_back("collectives inside a node: no node has two ranks");
  if (phases.empty() || phases.back().nodes == 1)
    notes.emplace_back("collectives between nodes: all ranks are on one node");
  for (std::size_t at = 0; at < phases.size(); ++at) {
    const GroupPhase& phase = phases[at];
    if (phase.together == 1 && phase.groups.front().size() == 2 &&
        (at + 1 == phases.size() || phases[at + 1].level != phase.level ||
         phases[at + 1].together == 1))
      notes.push_back(
          fmt::format("level {}: there is one group only, so nothing is known of groups "
                      "that send at once",
                      phase.level));
    std::vector<int> members{world.rank()};
    for (const std::vector<int>& group : phase.groups)
      if (std::find(group.begin(), group.end(), world.rank()) != group.end()) members = group;
    const auto group = machine.device_world().subgroup(members, "calibrate");
    const int ranks = group->size();
    std::optional<GroupCollectives> collectives;
    std::optional<Error> fault;
    attempt(fault, [&] {
      if (ranks < 2) return;
      CollectiveBudget budget;
      budget.seconds = seconds / static_cast<double>(phases.size());
      // A node's other ranks have buffers, too.
      const index_t free = machine.device().capacity().free;
      if (free > 0) budget.bytes = std::min(budget.bytes, free / (8 * std::ssize(job.leaves)));
      collectives.emplace(means, ranks, budget);
    });
    agree(world, fault);
    world.barrier();
    VerbSamples samples;
    if (collectives) samples = collectives->measure(*group, phase.together);
    // Once more where something was in the way; all groups, as they are to send at once.
    const double wide = std::any_of(samples.begin(), samples.end(), spreads_widely) ? 1 : 0;
    const bool again = reduced(world, wide, ReduceOp::max) > 0;
    if (!collectives) continue;
    if (again) {
      const VerbSamples second = collectives->measure(*group, phase.together);
      for (std::size_t verb = 0; verb < samples.size(); ++verb)
        samples[verb] = better_samples(std::move(samples[verb]), second[verb]);
    }
    auto level = std::find_if(own.begin(), own.end(), [&](const Level& one) {
      return one.name == phase.level && one.node_class == phase.node_class;
    });
    if (level == own.end()) {
      Level made;
      made.name = phase.level;
      made.node_class = phase.node_class;
      made.nodes = phase.nodes;
      for (const Verb verb : kLevelVerbs) made.collectives.push_back({verb, {}, {}});
      level = own.insert(own.end(), std::move(made));
    }
    if (group->rank() == 0)
      for (std::size_t verb = 0; verb < samples.size(); ++verb) {
        auto& known = level->collectives[verb].samples;
        known.insert(known.end(), samples[verb].begin(), samples[verb].end());
      }
  }
  world.barrier();
  world.set_slowdown(1);
  std::erase_if(own, [](const Level& level) { return level.collectives.front().samples.empty(); });
  machine.device().trim();
  machine.device().restart_peaks();
}

namespace {

constexpr int kFileSamples = 5;

struct Rates {
  std::vector<double> writes, reads;  // bytes per second of all together
};

/// So many ranks write a file each, several times.
Rates file_rates(Communicator& world, const std::string& folder, int writers, double seconds) {
  constexpr index_t kFirst = index_t{1} << 20, kMost = index_t{1} << 30;
  const bool writes = world.rank() < writers;
  const double end = PhaseClock::now() + seconds;
  Rates rates;
  index_t bytes = kFirst;
  for (int sample = -1; sample < kFileSamples; ++sample) {
    double written = 0, read = 0;
    std::optional<Error> fault;
    std::optional<FileTrial> file;
    world.barrier();
    attempt(fault, [&] {
      if (!writes) return;
      file.emplace(folder, fmt::format(".calibrate-{}", world.rank()));
      written = file->write(bytes);
    });
    agree(world, fault);
    world.barrier();
    attempt(fault, [&] {
      if (writes) read = file->read();
    });
    agree(world, fault);
    written = reduced(world, written, ReduceOp::max);
    read = reduced(world, read, ReduceOp::max);
    if (sample < 0) {  // how much fits into the time
      const double wished = static_cast<double>(bytes) * seconds /
                            ((kFileSamples + 1) * std::max(written + read, 1e-4));
      bytes = std::clamp(static_cast<index_t>(wished), kFirst, kMost);
      bytes = static_cast<index_t>(reduced(world, static_cast<double>(bytes), ReduceOp::max));
      continue;
    }
    const double all = static_cast<double>(bytes * writers);
    rates.writes.push_back(all / std::max(written, 1e-9));
    rates.reads.push_back(all / std::max(read, 1e-9));
    const bool late = PhaseClock::now() + written + read > end && sample >= 2;
    if (reduced(world, late ? 1 : 0, ReduceOp::max) > 0) break;
  }
  return rates;
}

StorageRate rate_of(int processes, const std::vector<double>& rates) {
  return {processes, median_of(std::span<const double>(rates)), median_error_of(rates)};
}

}  // namespace

Storage measure_storage(Communicator& world, const std::string& folder, double seconds,
                        std::vector<std::string>& notes) {
  Storage storage;
  std::vector<int> counts;
  for (int count = 1; count < world.size(); count *= 2) counts.push_back(count);
  counts.push_back(world.size());
  try {
    std::vector<double> latencies;
    for (int sample = 0; sample < kFileSamples; ++sample) {
      double own = 0;
      all_or_none(world, [&] {
        if (world.rank() == 0) own = small_file_seconds(folder, ".calibrate-small");
      });
      latencies.push_back(reduced(world, own, ReduceOp::max));
    }
    storage.latency_seconds = median_of(std::span<const double>(latencies));
    storage.latency_seconds_error = median_error_of(latencies);
    for (const int count : counts) {
      const Rates rates =
          file_rates(world, folder, count, seconds / static_cast<double>(counts.size()));
      storage.writes.push_back(rate_of(count, rates.writes));
      storage.reads.push_back(rate_of(count, rates.reads));
    }
    storage.folder = folder;
  } catch (const AgreedError& error) {
    notes.push_back(fmt::format("storage: {}", error.what()));
    return {};
  }
  return storage;
}

namespace {

NodeClass combined_class(const std::vector<const NodeClass*>& ranks,
                         const Calibration& calibration) {
  NodeClass all = *ranks.front();
  all.calibration = calibration;
  all.operators.clear();
  std::vector<double> launches;
  for (const NodeClass* rank : ranks) launches.push_back(rank->launch_seconds);
  all.launch_seconds = median_of(std::span<const double>(launches));
  all.launch_seconds_error =
      std::max(ranks.front()->launch_seconds_error, median_error_of(launches));
  for (const OperatorTable& first : ranks.front()->operators) {
    std::vector<std::vector<Sample>> samples;
    for (const NodeClass* rank : ranks)
      for (const OperatorTable& table : rank->operators)
        if (table.kind == first.kind && table.format == first.format)
          samples.push_back(table.samples);
    OperatorTable table{first.kind, first.format, {}, median_samples(samples)};
    if (samples.size() < ranks.size() || table.samples.empty()) continue;
    table.unreliable = spreads_widely(table.samples);
    table.fit = SampledFit::of_samples(
        table.samples, form_of(table.kind),
        [kind = table.kind](std::span<const double> shape) { return term_counts(kind, shape); });
    all.operators.push_back(std::move(table));
  }
  return all;
}

}  // namespace

Cluster combined(const std::vector<Cluster>& ranks, const Calibration& calibration) {
  Cluster all;
  for (const Cluster& rank : ranks) {
    const NodeClass& own = rank.classes.front();
    if (all.find_class(own.name) != nullptr) continue;
    std::vector<const NodeClass*> same;
    for (const Cluster& other : ranks)
      if (other.classes.front().name == own.name) same.push_back(&other.classes.front());
    all.classes.push_back(combined_class(same, calibration));
  }
  std::vector<std::pair<Level, VerbSamples>> levels;
  for (const Cluster& rank : ranks)
    for (const Level& level : rank.levels) {
      auto found = std::find_if(levels.begin(), levels.end(), [&](const auto& one) {
        return one.first.name == level.name && one.first.node_class == level.node_class;
      });
      if (found == levels.end()) found = levels.insert(levels.end(), {level, {}});
      for (const CollectiveTable& table : level.collectives)
        for (std::size_t at = 0; at < kLevelVerbs.size(); ++at)
          if (table.verb == kLevelVerbs[at])
            found->second[at].insert(found->second[at].end(), table.samples.begin(),
                                     table.samples.end());
    }
  for (auto& [level, samples] : levels) {
    set_measured(samples, level);
    for (CollectiveTable& table : level.collectives)
      table.unreliable = spreads_widely(table.samples);
    level.calibration = calibration;
    all.levels.push_back(std::move(level));
  }
  return joined(Cluster{}, all);  // in their order
}

}  // namespace t3d
