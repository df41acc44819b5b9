#include "hetero/planner/dealt_plan.hpp"

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "hetero/planner/memory_fit.hpp"
#include "hetero/planner/slab_seconds.hpp"
#include "hetero/planner/whole_leaves.hpp"
#include "hetero/solve/apportion.hpp"

namespace t3d {
namespace {

bool same_widths(const ReplicaShape& a, const ReplicaShape& b) {
  return a.cuboid == b.cuboid && a.hidden == b.hidden && a.groups == b.groups && a.ffn == b.ffn &&
         a.vocab == b.vocab && a.whole == b.whole;
}

class Dealer {
 public:
  Dealer(const PlanRecipe& recipe, index_t unit, PlanShape shape, const Speeds& speeds)
      : recipe_(recipe), unit_(unit), shape_(std::move(shape)), speeds_(speeds), times_(speeds) {
    index_t slabs = 0;
    for (const ReplicaShape& replica : shape_.replicas) slabs += replica.cuboid[0];
    most_.assign(static_cast<std::size_t>(slabs), recipe.sequences);
    add_slabs(static_cast<double>(recipe.sequences) / static_cast<double>(slabs));
  }

  DealtPlan run() {
    // Sequences are taken away only where storage cannot help; what is freed lets it move again.
    constexpr int kRounds = 12, kStorageRounds = 3;
    DealtPlan result;
    for (int round = 0, moves = 0; round < kRounds; ++round) {
      deal();
      result = {build_with_whole_leaves(recipe_, shape_), shape_, {}};
      const std::vector<MemoryShortage> short_of = memory_shortages(result.plan, speeds_);
      if (short_of.empty()) return result;
      result.shortage = short_of.front().text();
      if (moves < kStorageRounds && move_storage(result.plan, short_of)) {
        ++moves;
        continue;
      }
      moves = kStorageRounds - 1;
      if (!lower_limits(result.plan, short_of) && !move_storage(result.plan, short_of)) break;
    }
    return result;
  }

 private:
  void add_slabs(double usual) {
    work_.reserve(shape_.replicas.size());  // slabs point to its elements
    std::size_t slot = 0;
    std::vector<int> ranks;
    for (std::size_t d = 0; d < shape_.replicas.size(); ++d) {
      const ReplicaShape& replica = shape_.replicas[d];
      if (d == 0 || !same_widths(replica, shape_.replicas[d - 1]))
        work_.push_back(slab_work(recipe_, replica));
      for (index_t i = 0; i < replica.cuboid[0]; ++i) {
        ranks.clear();
        for (index_t at = 0; at < replica.cuboid[1] * replica.cuboid[2]; ++at, ++slot)
          ranks.push_back(shape_.place.empty() ? static_cast<int>(slot) : shape_.place[slot]);
        times_.add(ranks, work_.back(), usual);
      }
    }
  }

  void deal() {
    std::vector<index_t> most;
    for (const index_t limit : most_) most.push_back(limit / unit_);
    counts_ = min_max_apportion(
        times_.slabs(), recipe_.sequences / unit_,
        [&](std::size_t slab, index_t units) { return times_.seconds(slab, units * unit_); }, most);
    std::size_t slab = 0;
    for (ReplicaShape& replica : shape_.replicas) {
      replica.sequences = 0;
      replica.token_speeds.clear();
      for (index_t i = 0; i < replica.cuboid[0]; ++i, ++slab) {
        counts_[slab] *= unit_;
        replica.sequences += counts_[slab];
        replica.token_speeds.push_back(static_cast<double>(counts_[slab]));
      }
      if (replica.sequences == 0) replica.token_speeds.clear();
    }
  }

  bool move_storage(const Plan& plan, const std::vector<MemoryShortage>& short_of) {
    std::set<Cuboid> cuboids;
    for (const MemoryShortage& shortage : short_of)
      cuboids.insert(plan.replica(shortage.coord.d).cuboid);
    bool changed = false;
    for (const Cuboid& cuboid : cuboids) {
      if (cuboid[0] == 1) continue;
      const std::vector<index_t> sizes = storage_by_memory(plan, speeds_, cuboid);
      for (ReplicaShape& replica : shape_.replicas) {
        if (replica.cuboid != cuboid) continue;
        changed |= sizes != replica.storage;
        replica.storage = sizes;
      }
    }
    return changed;
  }

  /// False, and nothing changes, where a slab that is short has no sequences to give away, or no
  /// other can take them.
  bool lower_limits(const Plan& plan, const std::vector<MemoryShortage>& short_of) {
    const std::vector<index_t> fits = sequences_that_fit(plan, short_of, counts_);
    std::vector<index_t> most = most_;
    for (std::size_t at = 0; at < fits.size(); ++at) {
      if (counts_[short_of[at].slab] == 0) return false;
      most[short_of[at].slab] = std::max(fits[at], index_t{0});
    }
    index_t room = 0;
    for (const index_t limit : most) room += limit / unit_ * unit_;
    if (room < recipe_.sequences) return false;
    most_ = std::move(most);
    return true;
  }

  const PlanRecipe& recipe_;
  index_t unit_;
  PlanShape shape_;
  const Speeds& speeds_;
  std::vector<std::vector<LinearWork>> work_;
  SlabSeconds times_;
  std::vector<index_t> most_, counts_;  // sequences by slab
};

}  // namespace

DealtPlan dealt_plan(const PlanRecipe& recipe, index_t unit, PlanShape shape,
                     const Speeds& speeds) {
  T3D_CHECK(unit > 0 && recipe.sequences % unit == 0, "{} sequences in units of {}",
            recipe.sequences, unit);
  return Dealer(recipe, unit, std::move(shape), speeds).run();
}

}  // namespace t3d
