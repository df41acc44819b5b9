#include "hetero/balance/balancer.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "hetero/cost/flops.hpp"
#include "hetero/cost/memory.hpp"
#include "hetero/planner/slab_sequences.hpp"

namespace t3d {

Balancer::Balancer(const BalanceOptions& options, index_t micro, RankFacts facts)
    : options_(options), micro_(micro), facts_(std::move(facts)) {}

void Balancer::set_up(const Plan& plan) {
  parts_ = {};
  parts_.unit = leaf_unit(plan);
  parts_.by_replica = parts_.unit != 1;
  parts_.fixed_share.assign(static_cast<std::size_t>(plan.ranks), 0.0);
  const MeshShape mesh = plan.mesh();
  const std::vector<int> active = plan.active();
  for (int number = 0; number < static_cast<int>(active.size()); ++number)
    add_rank(plan, mesh.coord_of(number), active[static_cast<std::size_t>(number)]);
  limits_ = {};
  limits_.total = parts_.unit > 0 ? plan.sequences() / parts_.unit : 0;
  // A part without work is never measured again.
  limits_.least = limits_.total >= std::ssize(parts_.ranks) ? 1 : 0;
  make_controller();
}

// Of the operators between the products, the optimizer's do not depend on the batch.
void Balancer::add_rank(const Plan& plan, const Coord& coord, int rank) {
  std::size_t part = 0;
  for (index_t d = 0; d < coord.d; ++d)
    part += static_cast<std::size_t>(parts_.by_replica ? 1 : plan.replica(d).cuboid[0]);
  if (!parts_.by_replica) part += static_cast<std::size_t>(coord.i);
  parts_.ranks.resize(std::max(parts_.ranks.size(), part + 1));
  parts_.coords.resize(parts_.ranks.size());
  parts_.ranks[part].push_back(rank);
  parts_.coords[part].push_back(coord);
  const StepWork all = step_work(plan, coord), update = update_work(plan, coord);
  parts_.fixed_share[static_cast<std::size_t>(rank)] =
      all.streamed > 0 ? static_cast<double>(update.streamed) / static_cast<double>(all.streamed)
                       : 0;
}

void Balancer::make_controller() {
  controller_ = parts_.unit > 0 && parts_.ranks.size() > 1
                    ? make_share_controller(options_, limits_)
                    : nullptr;
}

bool Balancer::fits(const Plan& plan, std::size_t part) const {
  for (std::size_t at = 0; at < parts_.ranks[part].size(); ++at) {
    const auto rank = static_cast<std::size_t>(parts_.ranks[part][at]);
    const index_t room = facts_.room_bytes[rank];
    if (room == 0) continue;
    const MemoryCost cost = memory_cost(plan, parts_.coords[part][at]);
    if (needed_bytes(cost, facts_.on_gpu[rank]) > room) return false;
  }
  return true;
}

// The limit is the largest number between the units that it has, which fit, and those that do not,
// for which it fits; what it does not take goes to another part, whose memory is not looked at.
bool Balancer::limit(const Plan& plan, std::span<const index_t> units,
                     std::span<const index_t> next) {
  const Plan asked = with_slab_sequences(plan, slabs_of(next, plan), micro_);
  bool limited = false;
  for (std::size_t part = 0; part < next.size(); ++part) {
    if (next[part] <= units[part] || fits(asked, part)) continue;
    index_t low = units[part], high = next[part];
    while (high - low > 1) {
      std::vector<index_t> tried(next.begin(), next.end());
      const index_t middle = (low + high) / 2;
      tried[part == 0 ? 1 : 0] += tried[part] - middle;
      tried[part] = middle;
      const bool fit = fits(with_slab_sequences(plan, slabs_of(tried, plan), micro_), part);
      (fit ? low : high) = middle;
    }
    limits_.most.resize(next.size(), limits_.total);
    limits_.most[part] = low;
    limited = true;
  }
  return limited;
}

std::vector<index_t> Balancer::units_of(const std::vector<index_t>& slabs, const Plan& plan) const {
  if (!parts_.by_replica) return slabs;
  std::vector<index_t> units;
  for (const ReplicaPlan& replica : plan.replicas)
    units.push_back(replica.sequences() / parts_.unit);
  return units;
}

// Inside a replica the slabs keep their proportions.
std::vector<index_t> Balancer::slabs_of(std::span<const index_t> units, const Plan& plan) const {
  if (!parts_.by_replica) return {units.begin(), units.end()};
  std::vector<index_t> slabs;
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    const Partition cut =
        plan.replica(d).tokens_of(units[static_cast<std::size_t>(d)] * parts_.unit);
    for (const index_t size : cut.sizes()) slabs.push_back(size);
  }
  return slabs;
}

// Of the slowest rank.
ReplicaTimes Balancer::times_of(const std::vector<int>& ranks, const StepReport& report) const {
  ReplicaTimes times;
  for (const int rank : ranks) {
    const auto at = static_cast<std::size_t>(rank);
    const RankTimes& own = report.times[at];
    const double seconds = facts_.crowded[at] && own.cpu > 0 ? own.cpu : own.own;
    if (seconds <= times.compute_seconds) continue;
    times.compute_seconds = seconds;
    times.fixed_seconds =
        std::min(seconds, own.whole + parts_.fixed_share[at] * (own.other - own.whole));
    times.predicted_speed = own.speed;
  }
  return times;
}

std::optional<Plan> Balancer::observe(const StepReport& report, const Plan& plan) {
  if (options_.kind == BalanceKind::off || report.times.empty()) return std::nullopt;
  if (!known_ || !known_->same_parameters(plan)) set_up(plan);
  known_ = plan;
  // Times of the plan before, and of a first step, which fills caches, say nothing.
  const std::vector<index_t> slabs = slab_sequences(plan);
  if (!controller_ || report.measured.first || report.measured.slabs != slabs) return std::nullopt;
  const std::vector<index_t> units = units_of(slabs, plan);
  std::vector<ReplicaTimes> times;
  for (const std::vector<int>& ranks : parts_.ranks) times.push_back(times_of(ranks, report));
  const auto next = controller_->observe(times, units);
  if (!next || *next == units) return std::nullopt;
  if (limit(plan, units, *next)) {
    make_controller();  // begins anew, within the limits
    return std::nullopt;
  }
  Plan changed = with_slab_sequences(plan, slabs_of(*next, plan), micro_);
  if (changed == plan) return std::nullopt;
  return changed;
}

std::string Balancer::reason() const { return controller_ ? controller_->reason() : ""; }

}  // namespace t3d
