#include "hetero/balance/share_models.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/robust.hpp"

namespace t3d {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool measured(const ReplicaTimes& times) {
  return std::isfinite(times.compute_seconds) && std::isfinite(times.fixed_seconds) &&
         times.fixed_seconds >= 0 && times.compute_seconds >= times.fixed_seconds &&
         times.compute_seconds > 0;
}

}  // namespace

ShareModels::ShareModels(const BalanceOptions& options) : options_(options) {}

void ShareModels::observe(std::span<const ReplicaTimes> replicas, std::span<const index_t> shares,
                          double now_seconds) {
  RegimeOptions regime;
  regime.window = options_.window;
  regime.baseline = 10 * options_.window;
  regime.confirm = options_.confirm;
  if (replicas_.empty())
    replicas_.assign(replicas.size(), {RegimeTracker(regime), RegimeTracker(regime)});
  T3D_CHECK(replicas.size() == replicas_.size() && shares.size() == replicas.size(),
            "{} replicas and {} shares after {}", replicas.size(), shares.size(), replicas_.size());
  ready_ = true;
  std::vector<double> noises;
  for (std::size_t n = 0; n < replicas.size(); ++n) {
    Replica& replica = replicas_[n];
    const ReplicaTimes& times = replicas[n];
    replica.predicted_cost = times.predicted_speed > 0 ? 1 / times.predicted_speed : 0;
    // Times from before it was without units are of another regime.
    if (replica.idle && shares[n] > 0) replica.cost = RegimeTracker(regime);
    replica.idle = shares[n] == 0;
    if (measured(times)) {
      replica.fixed.observe(times.fixed_seconds, now_seconds);
      if (shares[n] > 0)
        replica.cost.observe((times.compute_seconds - times.fixed_seconds) / double(shares[n]),
                             now_seconds);
    }
    const RegimeTracker& cost = replica.cost;
    if (shares[n] > 0 && cost.samples() <= options_.window / 2) ready_ = false;
    if (cost.level() > 0)
      noises.push_back(cost.error() / cost.level() * std::sqrt(double(cost.samples())));
  }
  noise_ = median_of(std::move(noises));
}

bool ShareModels::correlated() const {
  std::vector<int> sides;
  sides.reserve(replicas_.size());
  for (const Replica& replica : replicas_)
    sides.push_back(replica.cost.side() != 0 ? replica.cost.side() : replica.fixed.side());
  return t3d::correlated(sides);
}

double ShareModels::cost(std::size_t n) const {
  const Replica& replica = replicas_[n];
  if (replica.idle && replica.predicted_cost > 0) return replica.predicted_cost;
  if (replica.cost.level() > 0) return replica.cost.level();
  return replica.predicted_cost > 0 ? replica.predicted_cost : kInfinity;
}

double ShareModels::seconds(std::size_t n, double units) const {
  const double fixed = replicas_[n].fixed.level();
  return units > 0 ? fixed + units * cost(n) : fixed;
}

double ShareModels::error(std::size_t n, double units) const {
  // The spread of a few steps of one replica says little: take it from all of them if that is more.
  const auto of = [&](const RegimeTracker& part) {
    const auto samples = double(std::max<index_t>(part.samples(), 1));
    return std::max(part.error(), noise_ * part.level() / std::sqrt(samples));
  };
  const double cost = units * of(replicas_[n].cost), fixed = of(replicas_[n].fixed);
  return std::sqrt(cost * cost + fixed * fixed);  // the same on every host, unlike std::hypot
}

double ShareModels::bound(index_t total) const {
  double rates = 0, spent = 0, least = 0;
  for (std::size_t n = 0; n < replicas_.size(); ++n) {
    const double fixed = replicas_[n].fixed.level();
    least = std::max(least, fixed);
    rates += 1 / cost(n);
    spent += fixed / cost(n);
  }
  return std::max(least, (double(total) + spent) / rates);
}

bool ShareModels::equal(index_t total) const {
  const double units = double(total) / double(replicas_.size());
  double least = kInfinity, most = 0;
  for (std::size_t n = 0; n < replicas_.size(); ++n) {
    least = std::min(least, seconds(n, units));
    most = std::max(most, seconds(n, units));
  }
  return most <= least * (1 + options_.tolerance);
}

}  // namespace t3d
