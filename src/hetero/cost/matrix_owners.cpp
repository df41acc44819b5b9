#include "hetero/cost/matrix_owners.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

#include "core/error.hpp"

namespace t3d {
namespace {

/// Gives work to the rank that ends it first; ties go to the lower rank. Among ranks of one speed
/// that is the one with the least load, so they form a heap each.
class EarliestEnd {
  using Load = std::pair<double, int>;  // work so far, rank
  using Heap = std::priority_queue<Load, std::vector<Load>, std::greater<>>;

 public:
  explicit EarliestEnd(std::span<const double> speeds) {
    std::map<double, std::vector<Load>> ranks;
    for (std::size_t rank = 0; rank < speeds.size(); ++rank)
      if (speeds[rank] > 0) ranks[speeds[rank]].emplace_back(0, static_cast<int>(rank));
    for (auto& [speed, loads] : ranks)
      classes_.emplace_back(speed, Heap(std::greater<>(), std::move(loads)));
  }
  int operator()(double cost) {
    std::pair<double, Heap>* best = nullptr;
    double earliest = 0;
    for (auto& one : classes_) {
      const auto& [load, rank] = one.second.top();
      const double end = (load + cost) / one.first;
      if (best != nullptr &&
          (end > earliest || (end == earliest && rank > best->second.top().second)))
        continue;
      best = &one;
      earliest = end;
    }
    Load chosen = best->second.top();
    best->second.pop();
    chosen.first += cost;
    best->second.push(chosen);
    return chosen.second;
  }

 private:
  std::vector<std::pair<double, Heap>> classes_;  // by speed
};

}  // namespace

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
  EarliestEnd choose(speeds);
  for (const index_t matrix : order) {
    const int rank = choose(cost(matrix));
    result.owner[static_cast<std::size_t>(matrix)] = rank;
    result.owned[static_cast<std::size_t>(rank)].push_back(matrix);
  }
  return result;
}

double newton_schulz_flops(index_t rows, index_t cols, index_t steps) {
  const auto m = static_cast<double>(std::min(rows, cols)),
             n = static_cast<double>(std::max(rows, cols));
  return static_cast<double>(steps) * (4 * m * m * n + 2 * m * m * m);
}

}  // namespace t3d
