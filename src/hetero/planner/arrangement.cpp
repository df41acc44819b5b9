#include "hetero/planner/arrangement.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "hetero/cost/memory.hpp"
#include "hetero/solve/apportion.hpp"

namespace t3d {
namespace {

/// The last slab's end; then how fast the slabs are together, which whole sequences hide.
struct Score {
  double seconds = 0, rate = 0;
  [[nodiscard]] bool better_than(const Score& other) const {
    constexpr double kSame = 1e-9;
    if (seconds < other.seconds * (1 - kSame)) return true;
    return seconds <= other.seconds && rate > other.rate * (1 + kSame);
  }
};

struct RankNeeds {
  std::array<double, kWorkClasses> work{};
  index_t bytes = 0;  // without shards at rest, where other slabs can keep them
};

/// What a slab's ranks by (j, k) need for any number of sequences: exact, kept once made.
class SlabWorks {
 public:
  SlabWorks(const PlanRecipe& recipe, const ReplicaShape& shape, bool memory_counts)
      : recipe_(recipe), shape_(shape), memory_counts_(memory_counts) {
    recipe_.micro = 0;
    (void)of(0);
  }
  const std::vector<RankNeeds>& of(index_t sequences) {
    std::vector<RankNeeds>& works = works_[sequences];
    if (works.empty()) works = made(sequences);
    return works;
  }

 private:
  [[nodiscard]] std::vector<RankNeeds> made(index_t sequences) {
    const auto& [p, q, r] = shape_.cuboid;
    shape_.storage.clear();
    shape_.sequences = std::max<index_t>(sequences, 1);  // of none, the update alone
    shape_.token_speeds.assign(static_cast<std::size_t>(p), 0);
    shape_.token_speeds[0] = 1;
    const Plan plan = build_plan(recipe_, {{shape_}, {}});
    if (p > 1) shape_.storage.assign(static_cast<std::size_t>(p), 1);
    if (p > 1) shape_.storage[0] = 0;
    const Plan bare = memory_counts_ ? build_plan(recipe_, {{shape_}, {}}) : plan;
    std::vector<RankNeeds> needs;
    for (index_t j = 0; j < q; ++j)
      for (index_t k = 0; k < r; ++k) {
        const Coord at{0, 0, j, k};
        const StepWork work = sequences == 0 ? update_work(plan, at) : step_work(plan, at);
        RankNeeds& own = needs.emplace_back();
        for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
          own.work[kind] = work_of(work, static_cast<WorkClass>(kind));
        if (memory_counts_) own.bytes = memory_cost(bare, at).tensors_peak;
      }
    return needs;
  }

  PlanRecipe recipe_;
  ReplicaShape shape_;
  bool memory_counts_;
  std::map<index_t, std::vector<RankNeeds>> works_;
};
using Works = std::vector<std::shared_ptr<SlabWorks>>;  // by replica

class Arrangement {
 public:
  Arrangement(const PlanRecipe& recipe, index_t unit, PlanShape shape, const Speeds& speeds,
              const ArrangementLimits& limits)
      : recipe_(recipe),
        unit_(unit),
        shape_(std::move(shape)),
        speeds_(speeds),
        limits_(limits),
        memory_counts_(std::any_of(speeds.ranks.begin(), speeds.ranks.end(),
                                   [](const RankSpeed& rank) { return rank.free_bytes > 0; })),
        trials_(limits.width_trials) {
    std::size_t slots = 0;
    for (const ReplicaShape& replica : shape_.replicas) {
      const auto ranks = static_cast<std::size_t>(replica.cuboid[1] * replica.cuboid[2]);
      for (index_t i = 0; i < replica.cuboid[0]; ++i, slots += ranks)
        slabs_.push_back({works_.size(), slots, ranks});
      works_.push_back(std::make_shared<SlabWorks>(recipe_, replica, memory_counts_));
    }
    for (std::size_t slot = shape_.place.size(); slot < slots; ++slot)
      shape_.place.push_back(static_cast<int>(slot));
    for (const int rank : limits.ranks)
      if (std::find(shape_.place.begin(), shape_.place.end(), rank) == shape_.place.end())
        idle_.push_back(rank);
    score_ = score(works_);
  }

  PlanShape run() {
    constexpr int kRounds = 8;
    for (int round = 0; round < kRounds; ++round) {
      const bool moved = limits_.places && change_places();
      const bool cut = limits_.widths && change_widths();
      if (!moved && !cut) break;
    }
    set_sequences();
    return std::move(shape_);
  }

 private:
  struct Slab {
    std::size_t replica = 0, slot = 0, ranks = 0;  // slot: the first
  };
  /// Ranks of a slab meet at every product: as predict_step().
  [[nodiscard]] double seconds(const Slab& slab, SlabWorks& works, index_t sequences) const {
    const std::vector<RankNeeds>& of_rank = works.of(sequences);
    double sum = 0;
    for (std::size_t at = 0; at < slab.ranks && memory_counts_; ++at) {
      const auto rank = static_cast<std::size_t>(shape_.place[slab.slot + at]);
      const index_t room = speeds_.ranks[rank].free_bytes;
      if (room > 0 && of_rank[at].bytes > room) return std::numeric_limits<double>::infinity();
    }
    for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
      double most = 0;
      for (std::size_t at = 0; at < slab.ranks; ++at) {
        const auto rank = static_cast<std::size_t>(shape_.place[slab.slot + at]);
        most = std::max(most, speeds_.ranks[rank].curves[kind].seconds(of_rank[at].work[kind]));
      }
      sum += most;
    }
    return sum;
  }

  [[nodiscard]] Score score(const Works& works) {
    const auto seconds_of = [&](std::size_t slab, index_t units) {
      return seconds(slabs_[slab], *works[slabs_[slab].replica], units * unit_);
    };
    const index_t even = recipe_.sequences / unit_ / std::ssize(slabs_) + 1;
    Score result;
    try {
      units_ = min_max_apportion(slabs_.size(), recipe_.sequences / unit_, seconds_of);
    } catch (const Error&) {  // memory is too small
      units_.assign(slabs_.size(), even);
    }
    for (std::size_t slab = 0; slab < slabs_.size(); ++slab) {
      result.seconds = std::max(result.seconds, seconds_of(slab, units_[slab]));
      result.rate += 1 / seconds_of(slab, even);
    }
    return result;
  }

  void set_sequences() {
    if (!std::isfinite(score(works_).seconds)) return;
    for (ReplicaShape& replica : shape_.replicas) {
      replica.sequences = 0;
      replica.token_speeds.clear();
    }
    for (std::size_t slab = 0; slab < slabs_.size(); ++slab) {
      ReplicaShape& replica = shape_.replicas[slabs_[slab].replica];
      replica.sequences += units_[slab] * unit_;
      replica.token_speeds.push_back(static_cast<double>(units_[slab]));
    }
    for (ReplicaShape& replica : shape_.replicas)
      if (replica.sequences == 0) replica.token_speeds.clear();
  }

  /// Keeps what `change` did where that is better, else `undo` does the opposite.
  template <class Change>
  bool attempt(const Change& change) {
    change();
    const Score now = score(works_);
    if (now.better_than(score_)) {
      score_ = now;
      return true;
    }
    change();  // its own opposite
    return false;
  }

  bool change_places() {
    bool any = false;
    std::vector<int>& place = shape_.place;
    for (bool again = true; again;) {
      again = false;
      for (std::size_t a = 0; a < place.size(); ++a) {
        for (std::size_t b = a + 1; b < place.size(); ++b)
          again |= attempt([&] { std::swap(place[a], place[b]); });
        for (int& rank : idle_) again |= attempt([&] { std::swap(place[a], rank); });
      }
      any |= again;
    }
    return any;
  }

  /// What `from` gives to `to` along a dimension; nothing where it has no more.
  static std::optional<Partition> moved(const Partition& cut, index_t from, index_t to,
                                        index_t units) {
    std::vector<index_t> sizes = cut.sizes();
    const index_t length = cut.length(), unit = cut.unit();
    std::vector<index_t> steps;
    for (const index_t size : sizes) steps.push_back((size + unit - 1) / unit);
    steps[static_cast<std::size_t>(from)] -= units;
    steps[static_cast<std::size_t>(to)] += units;
    if (steps[static_cast<std::size_t>(from)] < 1) return std::nullopt;
    std::vector<index_t> offsets{0};
    for (const index_t step : steps)
      offsets.push_back(std::min(offsets.back() + step * unit, length));
    return Partition::from_offsets(cut.name(), std::move(offsets), unit);
  }

  struct Shift {
    index_t groups = 0, ffn = 0, vocab = 0, hidden = 0;  // units
  };
  /// Widths of replica d after the shift from part `from` to part `to`.
  [[nodiscard]] std::optional<ReplicaShape> shifted(std::size_t d, index_t from, index_t to,
                                                    const Shift& shift) const {
    ReplicaShape replica = shape_.replicas[d];
    const auto apply = [&](std::optional<Partition>& cut, index_t units) {
      if (units == 0) return true;
      cut = units > 0 ? moved(*cut, from, to, units) : moved(*cut, to, from, -units);
      return cut.has_value();
    };
    if (!apply(replica.groups, shift.groups) || !apply(replica.ffn, shift.ffn) ||
        !apply(replica.vocab, shift.vocab) || !apply(replica.hidden, shift.hidden))
      return std::nullopt;
    return replica;
  }

  bool try_shift(std::size_t d, index_t from, index_t to, const Shift& shift) {
    if (trials_ <= 0) return false;
    std::optional<ReplicaShape> replica = shifted(d, from, to, shift);
    if (!replica) return false;
    --trials_;
    Works works = works_;
    try {
      works[d] = std::make_shared<SlabWorks>(recipe_, *replica, memory_counts_);
    } catch (const Error&) {
      return false;
    }
    const Score now = score(works);
    if (!now.better_than(score_)) return false;
    score_ = now;
    works_ = std::move(works);
    shape_.replicas[d] = std::move(*replica);
    return true;
  }

  void name_even_cuts(std::size_t d) {
    ReplicaShape& replica = shape_.replicas[d];
    if (replica.hidden && replica.groups && replica.ffn && replica.vocab) return;
    ReplicaShape one = replica;
    one.sequences = std::max<index_t>(one.sequences, 1);
    const ReplicaPlan even = build_plan(recipe_, {{one}, {}}).replicas.front();
    replica.hidden = even.hidden;
    replica.groups = even.groups;
    replica.ffn = even.ffn;
    replica.vocab = even.vocab;
  }

  bool change_widths() {
    bool any = false;
    for (std::size_t d = 0; d < shape_.replicas.size(); ++d) {
      const auto& [p, q, r] = shape_.replicas[d].cuboid;
      if (q * r == 1) continue;
      const ReplicaShape before = shape_.replicas[d];
      name_even_cuts(d);
      if (change_widths_of(d, q, r))
        any = true;
      else
        shape_.replicas[d] = before;
    }
    return any;
  }

  /// From large shifts to small ones.
  bool change_widths_of(std::size_t d, index_t q, index_t r) {
    bool any = false;
    const ReplicaShape& shape = shape_.replicas[d];
    const index_t ffn = steps_of(*shape.ffn), hidden = steps_of(*shape.hidden);
    const index_t vocab = steps_of(*shape.vocab);
    for (index_t step = std::max(first_step(ffn, q), first_step(hidden, r)); step >= 1; step /= 2)
      for (index_t from = 0; from < std::max(q, r); ++from)
        for (index_t to = 0; to < std::max(q, r); ++to) {
          if (from == to) continue;
          if (std::max(from, to) < q) {
            const index_t words = std::max<index_t>(step * vocab / ffn, 1);
            any |= try_shift(d, from, to, {0, step, words, 0});
            any |= try_shift(d, from, to, {0, step, 0, 0});
            any |= try_shift(d, from, to, {0, 0, words, 0});
            any |= try_shift(d, from, to, {1, step, words, 0});
            any |= try_shift(d, from, to, {1, 0, 0, 0});
            any |= try_shift(d, from, to, {1, -step, 0, 0});
          }
          if (std::max(from, to) < r) any |= try_shift(d, from, to, {0, 0, 0, step});
        }
    return any;
  }
  static index_t steps_of(const Partition& cut) {
    return (cut.length() + cut.unit() - 1) / cut.unit();
  }
  /// A quarter of a part, as a power of two.
  static index_t first_step(index_t units, index_t parts) {
    index_t step = 1;
    while (parts > 1 && 8 * step * parts <= units) step *= 2;
    return step;
  }

  const PlanRecipe& recipe_;
  index_t unit_;
  PlanShape shape_;
  const Speeds& speeds_;
  const ArrangementLimits& limits_;
  bool memory_counts_;  // some rank's is known
  int trials_;
  std::vector<Slab> slabs_;
  Works works_;
  std::vector<index_t> units_;  // by slab, as last dealt
  std::vector<int> idle_;
  Score score_;
};

}  // namespace

PlanShape better_arrangement(const PlanRecipe& recipe, index_t unit, PlanShape shape,
                             const Speeds& speeds, const ArrangementLimits& limits) {
  return Arrangement(recipe, unit, std::move(shape), speeds, limits).run();
}

}  // namespace t3d
