#include "app/commands/rank_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "io/log/step_record.hpp"
#include "train/step/trainer.hpp"

namespace t3d {
namespace {

constexpr index_t kSimulateAll = 64;  // up to here every rank is run, beyond one of each kind

using RankKind = std::tuple<index_t, index_t, index_t, index_t, index_t, bool, bool, bool, index_t>;

// First ranks of an axis hold the odd units of sub-splits, so they are kinds of their own. Replicas
// behind the first differ where their cuboids do.
RankKind kind_of(const ModelShape& shape, const Coord& c, index_t micro_sequences, bool alike) {
  return {shape.tokens(micro_sequences, 1).size(c.i),
          shape.groups.size(c.j),
          shape.ffn.size(c.j),
          shape.vocab.size(c.j),
          shape.hidden.size(c.k),
          c.i == 0,
          c.j == 0,
          c.k == 0,
          alike ? std::min(c.d, index_t{1}) : c.d};
}

}  // namespace

RankPlan simulate_rank(const Config& config, const MeshShape& mesh, const Coord& coord) {
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

std::vector<RankPlan> simulate_ranks(const Config& config, const MeshShape& mesh) {
  std::vector<ModelShape> shapes;  // by replica
  for (index_t d = 0; d < mesh.extent(Axis::d); ++d)
    shapes.emplace_back(config.model, config.mesh, mesh.seen_from(d), largest_micro(config));
  const bool alike = mesh.alike();
  std::map<RankKind, std::size_t> known;
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < static_cast<int>(mesh.ranks()); ++rank) {
    const Coord coord = mesh.coord_of(rank);
    const RankKind kind =
        kind_of(shapes[static_cast<std::size_t>(coord.d)], coord, largest_micro(config), alike);
    const auto found = known.find(kind);
    if (mesh.ranks() > kSimulateAll && found != known.end()) {
      ++plans[found->second].ranks;
      continue;
    }
    known.emplace(kind, plans.size());
    plans.push_back(simulate_rank(config, mesh, coord));
  }
  return plans;
}

std::string memory_shortage(const RankPlan& plan, const Device& device, int sharers) {
  const Device::Capacity capacity = device.capacity();
  if (capacity.total <= 0) return {};
  const auto text = [](index_t bytes) { return short_bytes(static_cast<double>(bytes)); };
  const index_t share = capacity.free / sharers;
  const MemoryAccount& memory = plan.memory;
  if (memory.reserved_peak <= share) return {};
  std::string parts;
  for (int kind = 0; kind < kMemoryKinds; ++kind)
    parts += fmt::format("{}{} {}", kind == 0 ? "" : " + ", name_of(static_cast<MemoryKind>(kind)),
                         text(memory.at_peak[static_cast<std::size_t>(kind)]));
  return fmt::format(
      "the rank at d={} i={} j={} k={} needs {} ({}) and {} has {} free of {}{}; a smaller "
      "batch.micro, batch.recompute = \"block\" or more ranks would help",
      plan.coord.d, plan.coord.i, plan.coord.j, plan.coord.k, text(memory.reserved_peak), parts,
      device.name(), text(capacity.free), text(capacity.total),
      sharers > 1 ? fmt::format(", for {} ranks", sharers) : "");
}

}  // namespace t3d
