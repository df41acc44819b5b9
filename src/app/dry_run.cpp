// --dry-run [RANKS]: what a job of that many ranks would be, without data, devices or other ranks.
// Ranks are simulated one after another in this process: the real layers run one real step on a
// device that only counts memory and a group that only counts bytes. Ranks whose parts have equal
// sizes are alike, so very large jobs need few simulations.
#include <algorithm>
#include <map>
#include <tuple>

#include "app/commands.hpp"
#include "app/setup.hpp"
#include "io/step_record.hpp"
#include "train/trainer.hpp"

namespace t3d {
namespace {

constexpr index_t kSimulateAll = 64;  // up to here every rank is run, beyond one of each kind

struct RankPlan {
  Coord coord;
  index_t ranks = 0;  // alike
  MemoryAccount memory;
  Ledger counted, predicted;
  index_t parameters = 0;
};

using Kind = std::tuple<index_t, index_t, index_t, index_t, index_t, bool, bool, bool, index_t>;

// First ranks of an axis hold the odd units of sub-splits, so they are kinds of their own.
Kind kind_of(const ModelShape& shape, const Coord& c, index_t micro_sequences) {
  return {shape.tokens(micro_sequences, 1).size(c.i),
          shape.groups.size(c.j),
          shape.ffn.size(c.j),
          shape.vocab.size(c.j),
          shape.hidden.size(c.k),
          c.i == 0,
          c.j == 0,
          c.k == 0,
          c.d == 0 ? 0 : 1};
}

RankPlan simulate(const Config& config, const MeshShape& mesh, const Coord& coord) {
  const auto world = make_dry_communicator(mesh.rank_of(coord), static_cast<int>(mesh.ranks()));
  Machine machine(*world, config, mesh, true);
  RankPlan plan;
  plan.coord = coord;
  plan.ranks = 1;
  {
    Trainer trainer(machine, config, 2, nullptr);
    for (const ParamBucket* bucket : trainer.model().buckets())
      plan.parameters += bucket->shard_count();
    (void)trainer.step(kNoStop);  // the second step finds the cached memory of the first
    world->ledger().clear();
    (void)trainer.step(kNoStop);
    plan.counted = world->ledger();
    plan.predicted = trainer.predicted_step();
    plan.memory = machine.device().memory();
  }
  return plan;
}

std::vector<RankPlan> simulate_all(const Config& config, const MeshShape& mesh) {
  const ModelShape shape(config.model, config.mesh, mesh, largest_micro(config));
  std::map<Kind, std::size_t> known;
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < static_cast<int>(mesh.ranks()); ++rank) {
    const Coord coord = mesh.coord_of(rank);
    const Kind kind = kind_of(shape, coord, largest_micro(config));
    const auto found = known.find(kind);
    if (mesh.ranks() > kSimulateAll && found != known.end()) {
      ++plans[found->second].ranks;
      continue;
    }
    known.emplace(kind, plans.size());
    plans.push_back(simulate(config, mesh, coord));
  }
  return plans;
}

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

void print_state(const std::vector<RankPlan>& plans, const Config& config, const MeshShape& mesh) {
  index_t most = 0;
  for (const RankPlan& plan : plans) most = std::max(most, plan.parameters);
  const double ideal =
      static_cast<double>(parameter_count(config.model)) / static_cast<double>(mesh.cuboid_ranks());
  fmt::print("parameters per rank: {} at most, {:.2f} % above total / ranks of a cuboid\n", most,
             100 * (static_cast<double>(most) / ideal - 1));
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

void print_mesh(const Config& config, const MeshShape& mesh, const ModelShape& shape) {
  const ModelConfig& m = config.model;
  fmt::print("mesh {} on {} ranks\n", mesh.describe(), mesh.ranks());
  fmt::print("model {:.2f} M parameters, {:.3f} GFLOP per token (causal; {:.3f} full square)\n",
             static_cast<double>(parameter_count(m)) / 1e6, flops_per_token(m, false) / 1e9,
             flops_per_token(m, true) / 1e9);
  fmt::print("batch {} sequences of {} tokens; micro-batch {}; steps {}\n", config.batch.sequences,
             m.context, largest_micro(config), planned_steps(config));
  fmt::print("widths {}\n       {}\n       {}\n       {}\n       {}\n",
             shape.tokens(largest_micro(config), m.context).describe(), shape.hidden.describe(),
             shape.groups.describe(), shape.ffn.describe(), shape.vocab.describe());
  fmt::print("attention over k: by {}\n",
             shape.attention == AttentionCut::heads ? "heads (layout B)" : "sequences (layout A)");
}

}  // namespace

int run_dry(Communicator& world, const CommandLine& command) {
  const int ranks = command.dry_run_ranks ? static_cast<int>(*command.dry_run_ranks) : world.size();
  Origins origins;
  Config config = load_input(world, command.input, command.overrides, ranks, origins);
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    if (config.model.vocab == 0) (void)open_corpus(config.data.train, config, false);
    const MeshShape mesh = mesh_shape(config);
    print_mesh(config, mesh, ModelShape(config.model, config.mesh, mesh, largest_micro(config)));
    const std::vector<RankPlan> plans = simulate_all(config, mesh);
    print_state(plans, config, mesh);
    print_memory(plans);
    if (!print_bytes(plans)) throw_error(ExitCode::internal, "predicted and counted bytes differ");
  });
  return 0;
}

}  // namespace t3d
