#include "hetero/planner/dealt_plan.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "hetero/planner/memory_fit.hpp"
#include "hetero/planner/slab_seconds.hpp"
#include "hetero/planner/whole_leaves.hpp"
#include "hetero/solve/apportion.hpp"

namespace t3d {
namespace {

/// Sizes of a fibre's shards at rest, relative, as even as the room for them allows (parts of the
/// fibre by slab; negative = none); empty where they are even. Slabs of equal sizes have equal
/// costs, so sizes are in few steps.
std::vector<index_t> storage_sizes(const std::vector<double>& room) {
  const index_t parts = std::ssize(room);
  const bool even = std::all_of(room.begin(), room.end(), [&](double part) {
    return part * static_cast<double>(parts) >= 1;
  });
  if (even) return {};
  constexpr index_t kLeastSteps = 4096, kStepsEach = 16;
  const index_t steps = std::max(kLeastSteps, kStepsEach * parts);
  std::vector<index_t> most;
  for (const double part : room)
    most.push_back(static_cast<index_t>(std::max(part, 0.0) * static_cast<double>(steps)));
  // What rounding down took away is given to the first ones; it is looked at again.
  index_t missing = steps - std::accumulate(most.begin(), most.end(), index_t{0});
  for (std::size_t n = 0; missing > 0; n = (n + 1) % most.size())
    if (room[n] > 0) ++most[n], --missing;
  return min_max_apportion(
      room.size(), steps, [](std::size_t, index_t units) { return static_cast<double>(units); },
      most);
}

/// Of the shards of slab i.
double part_of(const ReplicaShape& replica, std::size_t i) {
  if (replica.storage.empty()) return 1 / static_cast<double>(replica.cuboid[0]);
  return static_cast<double>(replica.storage[i]) /
         static_cast<double>(
             std::accumulate(replica.storage.begin(), replica.storage.end(), index_t{0}));
}

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
    reserved_.assign(most_.size(), 0);
    add_slabs(static_cast<double>(recipe.sequences) / static_cast<double>(slabs));
  }

  DealtPlan run() {
    deal();
    DealtPlan result = made();
    constexpr int kRounds = 8;
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<MemoryShortage> short_of = memory_shortages(result.plan, speeds_);
      if (short_of.empty()) return result;
      if (round == 0) shortage_ = short_of.front().text();
      if (round > 0) reserve(short_of);
      if (!deal_within_memory(result.plan)) break;
      result = made();
    }
    result.shortage = shortage_;
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

  [[nodiscard]] DealtPlan made() const {
    return {build_with_whole_leaves(recipe_, shape_), shape_, {}};
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

  /// What the plan needed beyond what SlabRooms said: no slab may use its last bytes.
  void reserve(const std::vector<MemoryShortage>& short_of) {
    index_t most = 0;
    for (const MemoryShortage& shortage : short_of)
      most = std::max(most, shortage.needed - shortage.room);
    for (index_t& bytes : reserved_) bytes += most;
  }

  /// Deals sequences and shards at rest anew within the ranks' memory. False where they do not fit.
  bool deal_within_memory(const Plan& plan) {
    SlabRooms rooms(plan, speeds_, reserved_);
    // Shards can lie elsewhere. Without them a slab has room for the most sequences.
    for_all_slabs([&](std::size_t slab, const ReplicaShape& replica, std::size_t) {
      most_[slab] = rooms.most(slab, replica.cuboid[0] > 1 ? 0 : 1, recipe_.sequences);
    });
    if (!enough_room()) return false;
    deal();
    bool again = false;
    for (const auto& [cuboid, parts] : fibre_parts(rooms))
      if (!set_storage(cuboid, parts, again)) return false;
    if (!again) return true;
    for_all_slabs([&](std::size_t slab, const ReplicaShape& replica, std::size_t i) {
      most_[slab] = rooms.most(slab, part_of(replica, i), recipe_.sequences);
    });
    if (!enough_room()) return false;
    deal();
    return true;
  }

  /// Calls visit(slab, replica, i).
  template <class Visit>
  void for_all_slabs(const Visit& visit) const {
    std::size_t slab = 0;
    for (const ReplicaShape& replica : shape_.replicas)
      for (std::size_t i = 0; i < static_cast<std::size_t>(replica.cuboid[0]); ++i, ++slab)
        visit(slab, replica, i);
  }

  [[nodiscard]] bool enough_room() const {
    index_t room = 0;
    for (const index_t limit : most_) room += std::max(limit, index_t{0}) / unit_ * unit_;
    return room >= recipe_.sequences &&
           std::none_of(most_.begin(), most_.end(), [](index_t limit) { return limit < 0; });
  }

  /// Parts of a fibre's shards for which slab i of all replicas of a cuboid has room, beside the
  /// sequences that it has now and beside none.
  struct FibreParts {
    std::vector<double> now, alone;
  };
  [[nodiscard]] std::map<Cuboid, FibreParts> fibre_parts(SlabRooms& rooms) const {
    std::map<Cuboid, FibreParts> all;
    for_all_slabs([&](std::size_t slab, const ReplicaShape& replica, std::size_t i) {
      if (replica.cuboid[0] == 1) return;
      auto& [now, alone] = all[replica.cuboid];
      now.resize(static_cast<std::size_t>(replica.cuboid[0]), 1);
      alone.resize(now.size(), 1);
      now[i] = std::min(now[i], rooms.left(slab, counts_[slab]));
      alone[i] = std::min(alone[i], rooms.left(slab, 0));
    });
    return all;
  }

  /// Where there is no room beside the sequences as they are dealt, it is taken in proportion from
  /// all slabs that have any; sequences must be dealt `again`. One division for all replicas of the
  /// cuboid, since replicas that are cut alike aggregate with fewer messages.
  bool set_storage(const Cuboid& cuboid, const FibreParts& parts, bool& again) {
    const auto sum = [](const std::vector<double>& all) {
      return std::accumulate(all.begin(), all.end(), 0.0);
    };
    std::vector<double> room = parts.now;
    const double missing = 1 - sum(parts.now), more = sum(parts.alone) - sum(parts.now);
    if (missing > 0) {
      if (missing > more) return false;
      again = true;
      for (std::size_t i = 0; i < room.size(); ++i)
        room[i] += missing / more * (parts.alone[i] - room[i]);
    }
    const std::vector<index_t> sizes = storage_sizes(room);
    for (ReplicaShape& replica : shape_.replicas)
      if (replica.cuboid == cuboid) replica.storage = sizes;
    return true;
  }

  const PlanRecipe& recipe_;
  index_t unit_;
  PlanShape shape_;
  const Speeds& speeds_;
  std::vector<std::vector<LinearWork>> work_;
  SlabSeconds times_;
  std::vector<index_t> most_, counts_;  // sequences by slab
  std::vector<index_t> reserved_;       // bytes by slab
  std::string shortage_;                // of the first deal
};

}  // namespace

DealtPlan dealt_plan(const PlanRecipe& recipe, index_t unit, PlanShape shape,
                     const Speeds& speeds) {
  T3D_CHECK(unit > 0 && recipe.sequences % unit == 0, "{} sequences in units of {}",
            recipe.sequences, unit);
  return Dealer(recipe, unit, std::move(shape), speeds).run();
}

}  // namespace t3d
