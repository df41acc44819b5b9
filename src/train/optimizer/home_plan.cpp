#include "train/optimizer/home_plan.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace t3d {

index_t HomePlan::rounds() const {
  index_t most = 0;
  for (const std::vector<index_t>& own : visits) most = std::max<index_t>(most, std::ssize(own));
  return most;
}

index_t HomePlan::guest(int rank, index_t round) const {
  const std::vector<index_t>& own = visits[static_cast<std::size_t>(rank)];
  return round < std::ssize(own) ? own[static_cast<std::size_t>(round)] : kNobody;
}

HomePlan plan_homes(std::span<const double> costs, std::span<const double> speeds) {
  T3D_CHECK(std::any_of(speeds.begin(), speeds.end(), [](double speed) { return speed > 0; }),
            "none of {} ranks can be a home", speeds.size());
  std::vector<index_t> order(costs.size());
  std::iota(order.begin(), order.end(), index_t{0});
  const auto cost = [&](index_t matrix) { return costs[static_cast<std::size_t>(matrix)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](index_t a, index_t b) { return cost(a) > cost(b); });

  HomePlan plan;
  plan.home.resize(costs.size());
  plan.visits.resize(speeds.size());
  std::vector<double> loads(speeds.size(), 0);
  for (const index_t matrix : order) {
    std::size_t best = speeds.size();
    double earliest = 0;
    for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
      if (speeds[rank] <= 0) continue;
      const double end = (loads[rank] + cost(matrix)) / speeds[rank];
      if (best < speeds.size() && end >= earliest) continue;
      best = rank;
      earliest = end;
    }
    loads[best] += cost(matrix);
    plan.home[static_cast<std::size_t>(matrix)] = static_cast<int>(best);
    plan.visits[best].push_back(matrix);
  }
  return plan;
}

}  // namespace t3d
