#include "tensor3d/matrix_owners.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <queue>

#include "core/error.hpp"

namespace t3d {
namespace {

constexpr index_t kRanksSearched = 64;

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

/// Moves and exchanges matrices of the rank that ends last.
class Improvement {
 public:
  Improvement(std::span<const double> costs, std::span<const double> speeds, MatrixOwners& owners)
      : costs_(costs), speeds_(speeds), owned_(owners.owned), loads_(speeds.size(), 0.0) {
    for (std::size_t rank = 0; rank < speeds.size(); ++rank)
      for (const index_t matrix : owned_[rank]) loads_[rank] += cost(matrix);
  }
  void run() {
    while (improve(last_to_end())) {
    }
  }

 private:
  /// `give` of the last rank's matrices, by place, against `take` of another's; kNone: nothing.
  struct Change {
    std::size_t other = 0;
    index_t give = 0, take = MatrixOwners::kNone;
    double end = 0;  // the later one of both ranks
  };
  [[nodiscard]] double cost(index_t matrix) const {
    return costs_[static_cast<std::size_t>(matrix)];
  }
  [[nodiscard]] double end(std::size_t rank, double more) const {
    return (loads_[rank] + more) / speeds_[rank];
  }
  [[nodiscard]] std::size_t last_to_end() const {
    std::size_t last = 0;
    for (std::size_t rank = 1; rank < loads_.size(); ++rank)
      if (loads_[rank] > 0 && (loads_[last] == 0 || end(rank, 0) > end(last, 0))) last = rank;
    return last;
  }
  bool improve(std::size_t last) {
    constexpr double kGain = 1e-9;  // roundings are no gain
    Change best{0, 0, MatrixOwners::kNone, end(last, 0) * (1 - kGain)};
    const double limit = best.end;
    for (index_t give = 0; give < std::ssize(owned_[last]); ++give) {
      if (give > 0 && of(last, give) == of(last, give - 1)) continue;
      for (std::size_t other = 0; other < speeds_.size(); ++other)
        if (other != last && speeds_[other] > 0) consider(last, other, give, best);
    }
    if (best.end >= limit) return false;
    apply(last, best);
    return true;
  }
  [[nodiscard]] double of(std::size_t rank, index_t place) const {
    return cost(owned_[rank][static_cast<std::size_t>(place)]);
  }
  void consider(std::size_t last, std::size_t other, index_t give, Change& best) const {
    for (index_t take = MatrixOwners::kNone; take < std::ssize(owned_[other]); ++take) {
      if (take > 0 && of(other, take) == of(other, take - 1)) continue;
      const double moved = of(last, give) - (take < 0 ? 0 : of(other, take));
      const double ends = std::max(end(last, -moved), end(other, moved));
      if (ends < best.end) best = {other, give, take, ends};
    }
  }
  void apply(std::size_t last, const Change& change) {
    std::vector<index_t>&from = owned_[last], &to = owned_[change.other];
    const index_t given = from[static_cast<std::size_t>(change.give)];
    double moved = cost(given);
    from.erase(from.begin() + change.give);
    if (change.take >= 0) {
      const index_t taken = to[static_cast<std::size_t>(change.take)];
      to.erase(to.begin() + change.take);
      moved -= cost(taken);
      insert(from, taken);
    }
    insert(to, given);
    loads_[last] -= moved;
    loads_[change.other] += moved;
  }
  /// Costliest first, then the earlier one.
  void insert(std::vector<index_t>& list, index_t matrix) const {
    const auto before = [this](index_t a, index_t b) {
      return cost(a) != cost(b) ? cost(a) > cost(b) : a < b;
    };
    list.insert(std::upper_bound(list.begin(), list.end(), matrix, before), matrix);
  }

  std::span<const double> costs_, speeds_;
  std::vector<std::vector<index_t>>& owned_;
  std::vector<double> loads_;
};

/// When each of a rank's matrices is done.
std::vector<double> ends_of(const std::vector<index_t>& owned, std::span<const double> costs,
                            double speed) {
  std::vector<double> ends;
  double work = 0;
  for (const index_t matrix : owned)
    ends.push_back((work += costs[static_cast<std::size_t>(matrix)]) / speed);
  return ends;
}

// A round ends when the rank with most matrices ends its next one. A result that leaves too early
// is waited for by all, one that leaves late costs memory only.
void set_rounds(std::span<const double> costs, std::span<const double> speeds,
                MatrixOwners& owners) {
  constexpr double kEqual = 1 + 1e-9;
  const auto pace = static_cast<std::size_t>(
      std::max_element(owners.owned.begin(), owners.owned.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); }) -
      owners.owned.begin());
  const std::vector<double> rounds = ends_of(owners.owned[pace], costs, speeds[pace]);
  owners.last.resize(speeds.size());
  for (std::size_t rank = 0; rank < speeds.size(); ++rank) {
    index_t next = 0, left = std::ssize(owners.owned[rank]);
    for (const double end : ends_of(owners.owned[rank], costs, speeds[rank])) {
      const index_t latest = std::ssize(rounds) - left--;
      while (next < latest && rounds[static_cast<std::size_t>(next)] * kEqual < end) ++next;
      owners.last[rank].push_back(next++);
    }
  }
}

}  // namespace

index_t MatrixOwners::rounds() const {
  index_t most = 0;
  for (const std::vector<index_t>& own : owned) most = std::max<index_t>(most, std::ssize(own));
  return most;
}

index_t MatrixOwners::beginning(int rank, index_t round) const {
  const auto at = static_cast<std::size_t>(rank);
  const auto next = std::lower_bound(last[at].begin(), last[at].end(), round);
  const bool begins =
      next != last[at].end() && (next == last[at].begin() ? 0 : next[-1] + 1) == round;
  return begins ? owned[at][static_cast<std::size_t>(next - last[at].begin())] : kNone;
}

index_t MatrixOwners::ending(int rank, index_t round) const {
  const auto at = static_cast<std::size_t>(rank);
  const auto found = std::lower_bound(last[at].begin(), last[at].end(), round);
  const bool ends = found != last[at].end() && *found == round;
  return ends ? owned[at][static_cast<std::size_t>(found - last[at].begin())] : kNone;
}

// A rank begins its next matrix at once.
bool MatrixOwners::busy_after(int rank, index_t round) const {
  const auto at = static_cast<std::size_t>(rank);
  return !last[at].empty() && last[at].back() > round && ending(rank, round) == kNone;
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
  const bool alike = std::all_of(speeds.begin(), speeds.end(),
                                 [&](double speed) { return speed == speeds.front(); });
  if (!alike && !costs.empty() && std::ssize(speeds) <= kRanksSearched) {
    Improvement(costs, speeds, result).run();
    for (std::size_t rank = 0; rank < speeds.size(); ++rank)
      for (const index_t matrix : result.owned[rank])
        result.owner[static_cast<std::size_t>(matrix)] = static_cast<int>(rank);
  }
  set_rounds(costs, speeds, result);
  return result;
}

double newton_schulz_flops(index_t rows, index_t cols, index_t steps) {
  const auto m = static_cast<double>(std::min(rows, cols)),
             n = static_cast<double>(std::max(rows, cols));
  return static_cast<double>(steps) * (4 * m * m * n + 2 * m * m * m);
}

}  // namespace t3d
