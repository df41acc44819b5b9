// --dry-run [RANKS]: what a job of that many ranks would be, without data, devices or other ranks.
#include <algorithm>
#include <map>

#include "app/commands/commands.hpp"
#include "app/commands/rank_plan.hpp"
#include "app/commands/setup.hpp"
#include "io/log/step_record.hpp"

namespace t3d {
namespace {

std::string bytes_text(index_t bytes) { return short_bytes(static_cast<double>(bytes)); }

void print_memory(const std::vector<RankPlan>& plans) {
  const auto most =
      std::max_element(plans.begin(), plans.end(), [](const RankPlan& a, const RankPlan& b) {
        return a.memory.reserved_peak < b.memory.reserved_peak;
      });
  const auto least =
      std::min_element(plans.begin(), plans.end(), [](const RankPlan& a, const RankPlan& b) {
        return a.memory.reserved_peak < b.memory.reserved_peak;
      });
  const Coord& c = most->coord;
  fmt::print(
      "memory per rank: {} at most (rank at d={} i={} j={} k={}), {} at least; at its peak\n",
      bytes_text(most->memory.reserved_peak), c.d, c.i, c.j, c.k,
      bytes_text(least->memory.reserved_peak));
  for (int kind = 0; kind < kMemoryKinds; ++kind)
    fmt::print("  {:<12} {:>12}\n", name_of(static_cast<MemoryKind>(kind)),
               bytes_text(most->memory.at_peak[static_cast<std::size_t>(kind)]));
}

void print_state(const std::vector<RankPlan>& plans, const Plan& plan) {
  const auto most = std::max_element(
      plans.begin(), plans.end(),
      [](const RankPlan& a, const RankPlan& b) { return a.parameters < b.parameters; });
  const double ideal = static_cast<double>(parameter_count(plan.model)) /
                       static_cast<double>(plan.mesh().seen_from(most->coord.d).cuboid_ranks());
  fmt::print("parameters per rank: {} at most, {:.2f} % above total / ranks of its cuboid\n",
             most->parameters, 100 * (static_cast<double>(most->parameters) / ideal - 1));
}

// Bytes sent per step, summed over all ranks, by axis; formula and count.
bool print_bytes(const std::vector<RankPlan>& plans) {
  std::map<std::string, std::pair<double, double>> by_axis;
  std::map<std::string, index_t> largest;
  bool equal = true;
  for (const RankPlan& plan : plans) {
    std::map<std::string, std::pair<index_t, index_t>> own;
    for (const auto& [key, entry] : plan.predicted.table()) own[key.second].first += entry.bytes;
    for (const auto& [key, entry] : plan.counted.table()) own[key.second].second += entry.bytes;
    for (const auto& [axis, bytes] : own) {
      by_axis[axis].first += static_cast<double>(bytes.first * plan.ranks);
      by_axis[axis].second += static_cast<double>(bytes.second * plan.ranks);
      largest[axis] = std::max(largest[axis], bytes.first);
      equal = equal && bytes.first == bytes.second;
    }
  }
  fmt::print("bytes sent per step    {:>14} {:>14} {:>14}\n", "largest rank", "all, formula",
             "all, counted");
  double total = 0;
  for (const auto& [axis, bytes] : by_axis) {
    if (bytes.first <= 0 && bytes.second <= 0) continue;
    fmt::print("  axis {:<14} {:>15} {:>14} {:>14}\n", axis, bytes_text(largest[axis]),
               short_bytes(bytes.first), short_bytes(bytes.second));
    total += bytes.first;
  }
  fmt::print("  total {:>45.0f} bytes{}\n", total, equal ? "" : "  FORMULA AND COUNT DIFFER");
  return equal;
}

void print_widths(const ReplicaPlan& cut, const Plan& plan) {
  const Partition tokens =
      cut.tokens_of(plan.largest_micro()).scaled(plan.model.context, "tokens");
  fmt::print("widths {}\n       {}\n       {}\n       {}\n       {}\n", tokens.describe(),
             cut.hidden.describe(), cut.groups.describe(), cut.ffn.describe(),
             cut.vocab.describe());
  fmt::print("attention over k: by {}\n",
             cut.attention == AttentionCut::heads ? "heads (layout B)" : "sequences (layout A)");
}

void print_mesh(const Plan& plan, index_t steps) {
  const ModelConfig& m = plan.model;
  const MeshShape mesh = plan.mesh();
  fmt::print("mesh {} on {} ranks", mesh.describe(), mesh.ranks());
  if (mesh.ranks() < plan.ranks) fmt::print(", {} idle", plan.ranks - mesh.ranks());
  fmt::print("; plan {}\n", plan.hash());
  fmt::print("model {:.2f} M parameters, {:.3f} GFLOP per token (causal; {:.3f} full square)\n",
             static_cast<double>(parameter_count(m)) / 1e6, flops_per_token(m, false) / 1e9,
             flops_per_token(m, true) / 1e9);
  fmt::print("batch {} sequences of {} tokens; micro-batch {}; steps {}\n", plan.sequences(),
             m.context, plan.largest_micro(), steps);
  for (index_t d = 0; d < (plan.alike() ? 1 : mesh.extent(Axis::d)); ++d) {
    if (!plan.alike()) fmt::print("replica {}\n", d);
    print_widths(plan.replica(d), plan);
  }
}

}  // namespace

int run_dry(Communicator& world, const CommandLine& command) {
  const int ranks = command.dry_run_ranks ? static_cast<int>(*command.dry_run_ranks) : world.size();
  Origins origins;
  Config config = load_input(world, command.input, command.overrides, ranks, origins);
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    if (config.model.vocab == 0) (void)open_corpus(config.data.train, config, false);
    const bool gpus = config.mesh.device == DeviceRule::cuda || config.mesh.device == DeviceRule::mixed;
    const Plan plan = make_plan(config, {ranks, gpus ? TransportKind::staged : TransportKind::host, gpus});
    print_mesh(plan, planned_steps(config));
    const std::vector<RankPlan> plans = simulate_ranks(plan, config.optimizer);
    print_state(plans, plan);
    print_memory(plans);
    if (!print_bytes(plans)) throw_error(ExitCode::internal, "predicted and counted bytes differ");
  });
  return 0;
}

}  // namespace t3d
