#include "hetero/balance/balancer.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "hetero/cost/flops.hpp"
#include "hetero/planner/slab_sequences.hpp"

namespace t3d {

Balancer::Balancer(const BalanceOptions& options, index_t micro, std::vector<bool> crowded)
    : options_(options), micro_(micro), crowded_(std::move(crowded)) {}

// Of the operators between the products, the optimizer's do not depend on the batch.
void Balancer::set_up(const Plan& plan) {
  parts_ = {};
  parts_.unit = leaf_unit(plan);
  parts_.by_replica = parts_.unit != 1;
  parts_.fixed_share.assign(static_cast<std::size_t>(plan.ranks), 0.0);
  const MeshShape mesh = plan.mesh();
  const std::vector<int> active = plan.active();
  for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
    const auto& [p, q, r] = plan.replica(d).cuboid;
    for (index_t i = 0; i < p; ++i) {
      if (i == 0 || !parts_.by_replica) parts_.ranks.emplace_back();
      for (index_t j = 0; j < q; ++j)
        for (index_t k = 0; k < r; ++k) {
          const Coord coord{d, i, j, k};
          const int rank = active[static_cast<std::size_t>(mesh.seen_from(d).rank_of(coord))];
          parts_.ranks.back().push_back(rank);
          const StepWork all = step_work(plan, coord), update = update_work(plan, coord);
          parts_.fixed_share[static_cast<std::size_t>(rank)] =
              all.streamed > 0
                  ? static_cast<double>(update.streamed) / static_cast<double>(all.streamed)
                  : 0;
        }
    }
  }
  ShareLimits limits;
  limits.total = parts_.unit > 0 ? plan.sequences() / parts_.unit : 0;
  // A part without work is never measured again.
  limits.least = limits.total >= std::ssize(parts_.ranks) ? 1 : 0;
  controller_ = parts_.unit > 0 && parts_.ranks.size() > 1 ? make_share_controller(options_, limits)
                                                           : nullptr;
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
    const double seconds = crowded_[at] && own.cpu > 0 ? own.cpu : own.own;
    if (seconds <= times.compute_seconds) continue;
    times.compute_seconds = seconds;
    times.fixed_seconds = std::min(seconds, parts_.fixed_share[at] * own.other);
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
  Plan changed = with_slab_sequences(plan, slabs_of(*next, plan), micro_);
  if (changed == plan) return std::nullopt;
  return changed;
}

std::string Balancer::reason() const { return controller_ ? controller_->reason() : ""; }

}  // namespace t3d
