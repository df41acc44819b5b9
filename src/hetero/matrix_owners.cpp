#include "hetero/matrix_owners.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace t3d {

index_t MatrixOwners::rounds() const {
  index_t most = 0;
  for (const std::vector<index_t>& own : owned) most = std::max<index_t>(most, std::ssize(own));
  return most;
}

index_t MatrixOwners::matrix(int rank, index_t round) const {
  const std::vector<index_t>& own = owned[static_cast<std::size_t>(rank)];
  return round < std::ssize(own) ? own[static_cast<std::size_t>(round)] : kNone;
}

MatrixOwners choose_owners(std::span<const double> costs, std::span<const double> speeds) {
  T3D_CHECK(std::any_of(speeds.begin(), speeds.end(), [](double speed) { return speed > 0; }),
            "none of {} ranks can own a matrix", speeds.size());
  std::vector<index_t> order(costs.size());
  std::iota(order.begin(), order.end(), index_t{0});
  const auto cost = [&](index_t matrix) { return costs[static_cast<std::size_t>(matrix)]; };
  std::stable_sort(order.begin(), order.end(),
                   [&](index_t a, index_t b) { return cost(a) > cost(b); });

  MatrixOwners result;
  result.owner.resize(costs.size());
  result.owned.resize(speeds.size());
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
    result.owner[static_cast<std::size_t>(matrix)] = static_cast<int>(best);
    result.owned[best].push_back(matrix);
  }
  return result;
}

double newton_schulz_flops(index_t rows, index_t cols, index_t steps) {
  const auto m = static_cast<double>(std::min(rows, cols)),
             n = static_cast<double>(std::max(rows, cols));
  return static_cast<double>(steps) * (4 * m * m * n + 2 * m * m * m);
}

}  // namespace t3d
