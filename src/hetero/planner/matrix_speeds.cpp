#include "hetero/planner/matrix_speeds.hpp"

#include <algorithm>
#include <cmath>

#include "hetero/cost/update_traffic.hpp"

namespace t3d {

std::vector<index_t> matrix_speeds(std::span<const double> seconds, double tolerance) {
  constexpr double kFastest = 100;
  const auto [fastest, slowest] = std::minmax_element(seconds.begin(), seconds.end());
  if (!std::isfinite(*fastest) || *slowest <= (1 + tolerance) * *fastest) return {};
  std::vector<index_t> speeds;
  for (const double own : seconds) speeds.push_back(std::llround(kFastest * *fastest / own));
  return speeds;
}

void set_matrix_speeds(const PlanRecipe& recipe, const Speeds& speeds, double tolerance,
                       PlanShape& shape) {
  if (recipe.base.optimizer != OptimizerKind::muon) return;
  double flops = 0;
  for (const auto& [rows, cols] : hidden_matrices(recipe.base.model))
    flops += newton_schulz_flops(rows, cols, kNewtonSchulzSteps);
  std::size_t slot = 0;
  for (ReplicaShape& replica : shape.replicas) {
    const index_t ranks = replica.cuboid[0] * replica.cuboid[1] * replica.cuboid[2];
    std::vector<double> seconds;
    for (index_t at = 0; at < ranks; ++at, ++slot) {
      const std::size_t rank =
          shape.place.empty() ? slot : static_cast<std::size_t>(shape.place[slot]);
      seconds.push_back(
          speeds.ranks[rank].curve(WorkClass::whole).seconds(flops / static_cast<double>(ranks)));
    }
    replica.whole = matrix_speeds(seconds, tolerance);
  }
}

}  // namespace t3d
