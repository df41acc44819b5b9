#include "hetero/balance/balancer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "hetero/balance/rank_seconds.hpp"
#include "hetero/cost/memory.hpp"
#include "hetero/planner/slab_sequences.hpp"

namespace t3d {
namespace {

using Counts = std::vector<index_t>;

constexpr index_t kIdleWindows = 10;  // windows before a part without units is tried

/// As many sequences on each slab as k cuts evenly, in one pass: what a sequence costs is asked of
/// this plan, since slabs of the real one may have none.
Plan one_pass(Plan plan) {
  for (ReplicaPlan& replica : plan.replicas) {
    const auto& [p, q, r] = replica.cuboid;
    for (auto& leaf : replica.leaves) leaf.clear();
    replica.leaves.front() = {p * r};
    replica.tokens = {Partition::even("tokens", p * r, p)};
  }
  return plan;
}

/// With several passes over a cut token axis not every division is possible: each pass is cut in
/// whole sequences.
bool cuts_passes(const Plan& plan, index_t micro) {
  return micro > 0 && std::any_of(plan.replicas.begin(), plan.replicas.end(),
                                  [](const ReplicaPlan& replica) { return replica.cuboid[0] > 1; });
}

/// `counts` with part n at `units`; what it does not take goes to others, within the limits.
Counts with_part(Counts counts, std::size_t n, index_t units, const ShareLimits& limits) {
  index_t rest = counts[n] - units;
  counts[n] = units;
  for (std::size_t other = 0; other < counts.size() && rest > 0; ++other) {
    if (other == n) continue;
    const index_t more = std::clamp(most_of(limits, other) - counts[other], index_t{0}, rest);
    counts[other] += more;
    rest -= more;
  }
  return counts;
}

}  // namespace

Balancer::Balancer(const BalanceOptions& options, index_t micro, RankFacts facts,
                   std::optional<Speeds> known)
    : options_(options),
      micro_(micro),
      facts_(std::move(facts)),
      speeds_(std::move(known)),
      trial_(options) {}

void Balancer::take(const Plan& plan) {
  if (!divides_as_before(plan)) {
    set_up(plan);
    trial_ = StepTrial(options_);  // steps of another plan are no measure of shares
  }
  known_ = plan;
  slabs_ = slab_sequences(plan);
  if (parts_.unit > 0) units_ = units_of(plan);
  since_change_ = 0;
}

// Only samples have changed hands: what was learned of the parts is still true.
bool Balancer::divides_as_before(const Plan& plan) const {
  if (!known_ || leaf_unit(plan) != parts_.unit) return false;
  Plan resized = plan;  // whole leaves that move make room for as many everywhere
  for (ReplicaPlan& replica : resized.replicas)
    replica.leaves.resize(static_cast<std::size_t>(known_->leaves_per_replica()));
  return known_->same_parameters(resized);
}

void Balancer::set_up(const Plan& plan) {
  parts_ = {};
  parts_.unit = leaf_unit(plan);
  parts_.by_replica = moves_whole_leaves(plan);
  const Plan base = one_pass(plan);
  const MeshShape mesh = plan.mesh();
  const std::vector<int> active = plan.active();
  for (int number = 0; number < static_cast<int>(active.size()); ++number)
    add_rank(base, mesh.coord_of(number), active[static_cast<std::size_t>(number)]);
  limits_ = {};
  limits_.total = parts_.unit > 0 ? plan.sequences() / parts_.unit : 0;
  if (parts_.by_replica)
    limits_.most.assign(parts_.size(), kMostLeaves / std::ssize(plan.replicas));
  make_controller(plan);
  idle_.emplace(known_seconds(plan), kIdleWindows * options_.window);
}

void Balancer::add_rank(const Plan& base, const Coord& coord, int rank) {
  Member member{rank, coord, 0, {}};
  for (index_t d = 0; d < coord.d; ++d)
    member.slab += static_cast<std::size_t>(base.replica(d).cuboid[0]);
  member.slab += static_cast<std::size_t>(coord.i);
  const StepWork all = step_work(base, coord), fixed = update_work(base, coord);
  const auto sequences = static_cast<double>(base.replica(coord.d).cuboid[2]);
  for (std::size_t at = 0; at < kWorkClasses; ++at) {
    const auto kind = static_cast<WorkClass>(at);
    member.work.fixed[at] = work_of(fixed, kind);
    member.work.per_sequence[at] = (work_of(all, kind) - member.work.fixed[at]) / sequences;
  }
  const std::size_t part = parts_.by_replica ? static_cast<std::size_t>(coord.d) : member.slab;
  parts_.members.resize(std::max(parts_.size(), part + 1));
  parts_.members[part].push_back(member);
}

// Of a unit, at about as many sequences as a slab has.
std::vector<double> Balancer::known_seconds(const Plan& plan) const {
  std::vector<double> known(parts_.size(), 0.0);
  if (!speeds_ || std::ssize(speeds_->ranks) != plan.ranks) return known;
  const double usual =
      std::max(1.0, double(plan.sequences()) / double(slab_sequences(plan).size()));
  for (std::size_t part = 0; part < known.size(); ++part)
    for (const Member& member : parts_.members[part]) {
      const RankSpeed& speed = speeds_->ranks[static_cast<std::size_t>(member.rank)];
      double seconds = 0;
      for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
        seconds += speed.curves[kind].seconds(member.work.per_sequence[kind] * usual);
      known[part] = std::max(known[part], seconds / usual);
    }
  return known;
}

void Balancer::make_controller(const Plan& plan) {
  controller_.reset();
  if (parts_.unit == 0 || parts_.size() < 2) return;
  PossibleShares possible;
  if (!parts_.by_replica && cuts_passes(plan, micro_))
    possible = [plan, micro = micro_](const Counts& units) {
      return slab_sequences(with_slab_sequences(plan, units, micro));
    };
  controller_ = make_model_controller(options_, limits_, std::move(possible));
}

bool Balancer::fits(const Plan& plan, std::size_t part) const {
  for (const Member& member : parts_.members[part]) {
    const auto rank = static_cast<std::size_t>(member.rank);
    const index_t room = facts_.room_bytes[rank];
    if (room == 0) continue;
    if (needed_bytes(memory_cost(plan, member.coord), facts_.on_gpu[rank]) > room) return false;
  }
  return true;
}

// The limit is the largest number between the units that it has, which fit, and those that do not,
// for which it fits; what it does not take goes to other parts, whose memory is not looked at.
bool Balancer::limit(const Plan& plan, const Counts& next) {
  const Plan asked = with_units(plan, next);
  bool limited = false;
  for (std::size_t part = 0; part < next.size(); ++part) {
    if (next[part] <= units_[part] || fits(asked, part)) continue;
    index_t low = units_[part], high = next[part];
    while (high - low > 1) {
      const index_t middle = (low + high) / 2;
      const bool fit = fits(with_units(plan, with_part(next, part, middle, limits_)), part);
      (fit ? low : high) = middle;
    }
    limits_.most.resize(next.size(), limits_.total);
    limits_.most[part] = low;
    limited = true;
  }
  return limited;
}

Counts Balancer::units_of(const Plan& plan) const {
  if (!parts_.by_replica) return slab_sequences(plan);
  Counts units;
  for (const ReplicaPlan& replica : plan.replicas)
    units.push_back(replica.sequences() / parts_.unit);
  return units;
}

// Inside a replica the slabs keep their proportions.
Plan Balancer::with_units(const Plan& plan, const Counts& units) const {
  if (!parts_.by_replica) return with_slab_sequences(plan, units, micro_);
  Counts slabs;
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    const Partition cut =
        plan.replica(d).tokens_of(units[static_cast<std::size_t>(d)] * parts_.unit);
    for (const index_t size : cut.sizes()) slabs.push_back(size);
  }
  return with_slab_sequences(plan, slabs, micro_);
}

// Of the slowest rank.
ReplicaTimes Balancer::times_of(std::size_t part, const StepReport& report) const {
  ReplicaTimes times;
  for (const Member& member : parts_.members[part]) {
    const auto at = static_cast<std::size_t>(member.rank);
    const RankTimes& own = report.times[at];
    const index_t sequences = slabs_[member.slab];
    const RankWork work{member.work.step(double(sequences)), member.work.step(0)};
    const RankSeconds seconds = rank_seconds(own, work, facts_.crowded[at]);
    if (seconds.all > times.compute_seconds) {
      times.compute_seconds = seconds.all;
      times.fixed_seconds = seconds.fixed;
    }
  }
  return times;
}

std::optional<Counts> Balancer::next_units(std::vector<ReplicaTimes>& times) {
  idle_->observe(times, units_);
  if (idle_->trying()) {
    std::optional<Counts> back = idle_->judge(times, units_);
    reason_ = back ? "roll-back: a part without sequences was tried and is as slow as before"
                   : "a part without sequences is being tried";
    if (back || idle_->trying()) return back;
  }
  std::optional<Counts> next = controller_->observe(times, units_);
  reason_ = controller_->reason();
  if (std::optional<Counts> back = trial_.judge()) {
    controller_->drop_proposal();
    reason_ = trial_.reason();
    return back;
  }
  if (trial_.holds() && next) {
    controller_->drop_proposal();
    reason_ = "no change soon after a roll-back";
    next.reset();
  }
  if (next && *next != units_) return next;
  // A change that is on trial comes first.
  if (++since_change_ <= 2 * options_.window) return std::nullopt;
  next = idle_->due(times, units_, limits_);
  if (next) reason_ = "a part without sequences is tried: it may have become faster";
  return next;
}

std::optional<Plan> Balancer::change(std::vector<ReplicaTimes> times, const Plan& plan) {
  const std::optional<Counts> next = next_units(times);
  if (!next) return std::nullopt;
  if (limit(plan, *next)) {
    controller_->limit(limits_);
    return std::nullopt;
  }
  Plan changed = with_units(plan, *next);
  if (changed == plan) {
    controller_->drop_proposal();
    return std::nullopt;
  }
  const Counts after = units_of(changed);
  idle_->begin(units_, after);
  // A try of a part without units has a judge of its own.
  if (!idle_->trying()) trial_.begin(after);
  return changed;
}

std::optional<Plan> Balancer::observe(const StepReport& report, const Plan& plan) {
  if (options_.kind == BalanceKind::off || report.times.empty()) return std::nullopt;
  if (!known_ || report.plan != number_) take(plan);
  number_ = report.plan;
  // Times of the plan before, and of a first step, which fills caches, say nothing.
  if (!controller_ || !report.measures_plan()) return std::nullopt;
  std::vector<ReplicaTimes> times;
  for (std::size_t part = 0; part < parts_.size(); ++part) times.push_back(times_of(part, report));
  trial_.observe(report, units_);
  std::optional<Plan> next;
  try {
    next = change(times, plan);
  } catch (const Error& error) {
    if (error.code() != ExitCode::config) throw;
    controller_->drop_proposal();
    reason_ = error.what();  // no division that is sound: the present one stays
  }
  if (next)
    apart_ = 0;
  else
    look_for_hindrance(times, plan);
  return next;
}

void Balancer::look_for_hindrance(const std::vector<ReplicaTimes>& times, const Plan& plan) {
  constexpr double kApart = 1.2;  // the slowest part's time by the fastest one's
  constexpr index_t kWindows = 4, kFewSequences = 8;  // per slab and micro-batch
  if (told_) return;
  const auto less = [](const ReplicaTimes& a, const ReplicaTimes& b) {
    return a.compute_seconds < b.compute_seconds;
  };
  const auto [least, most] = std::minmax_element(times.begin(), times.end(), less);
  const bool apart = most->compute_seconds > kApart * least->compute_seconds;
  apart_ = apart ? apart_ + 1 : 0;
  if (apart_ < kWindows * options_.window) return;
  for (const ReplicaPlan& replica : plan.replicas) {
    const index_t slabs = replica.cuboid[0], micro = replica.largest_micro();
    if (slabs == 1 || micro == replica.sequences() || micro >= kFewSequences * slabs) continue;
    hindrance_ = fmt::format(
        "some ranks need much longer than others, and the batch cannot follow: every micro-batch "
        "of {} sequences is cut alike over {} slabs, in whole sequences; a larger batch.micro (0 = "
        "the whole batch at once) leaves room for that",
        micro, slabs);
    told_ = true;
    return;
  }
}

}  // namespace t3d
