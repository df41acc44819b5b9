#include "tools/rank_cost.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>

namespace t3d {
namespace {

constexpr index_t kSmallJob = 64;  // up to here every rank is computed and some are run
constexpr double kMemoryTolerance = 0.02;

/// Places on an axis that are alike: the first of them, and how many.
struct AxisKind {
  index_t first = 0, count = 0;
};
using Sizes = std::vector<index_t>;

template <class SizesAt>
std::vector<AxisKind> axis_kinds(index_t extent, const SizesAt& sizes_at) {
  std::map<std::pair<bool, Sizes>, AxisKind> kinds;
  for (index_t at = 0; at < extent; ++at) {
    AxisKind& kind = kinds.try_emplace({at > 0, sizes_at(at)}, AxisKind{at, 0}).first->second;
    ++kind.count;
  }
  std::vector<AxisKind> result;
  for (const auto& [key, kind] : kinds) result.push_back(kind);
  return result;
}

// The first replica, and of those behind it one for each way to be cut and fed.
std::vector<AxisKind> replica_kinds(const Plan& plan) {
  std::vector<AxisKind> kinds{{0, 1}};
  for (index_t d = 1; d < std::ssize(plan.replicas); ++d) {
    std::size_t at = 1;
    while (at < kinds.size() && !(plan.replica(kinds[at].first) == plan.replica(d))) ++at;
    if (at == kinds.size()) kinds.push_back({d, 0});
    ++kinds[at].count;
  }
  return kinds;
}

struct RankKind {
  Coord coord;
  index_t ranks = 1;
};

std::vector<RankKind> rank_kinds(const Plan& plan) {
  std::vector<RankKind> kinds;
  for (const AxisKind& d : replica_kinds(plan)) {
    const ReplicaPlan& cut = plan.replica(d.first);
    const auto of_i = axis_kinds(cut.cuboid[0], [&](index_t at) {
      Sizes sizes{cut.storage.size(at)};
      for (const Partition& tokens : cut.tokens) sizes.push_back(tokens.size(at));
      return sizes;
    });
    const auto of_j = axis_kinds(cut.cuboid[1], [&](index_t at) {
      return Sizes{cut.groups.size(at), cut.ffn.size(at), cut.vocab.size(at)};
    });
    const auto of_k =
        axis_kinds(cut.cuboid[2], [&](index_t at) { return Sizes{cut.hidden.size(at)}; });
    for (const AxisKind& i : of_i)
      for (const AxisKind& j : of_j)
        for (const AxisKind& k : of_k)
          kinds.push_back(
              {{d.first, i.first, j.first, k.first}, d.count * i.count * j.count * k.count});
  }
  return kinds;
}

std::vector<RankKind> every_rank(const MeshShape& mesh) {
  std::vector<RankKind> all;
  for (int rank = 0; rank < static_cast<int>(mesh.ranks()); ++rank)
    all.push_back({mesh.coord_of(rank), 1});
  return all;
}

class CostCheck {
 public:
  CostCheck(const RankCost& cost, const RankPlan& run) : cost_(cost), run_(run) {
    bytes();
    if (cost.parameters != run.parameters) line("weights", cost.parameters, run.parameters);
    memory("tensors", cost.memory.tensors_peak, run.memory.reserved_peak);
    memory("tensors in use", cost.memory.live_peak, run.memory.live_peak);
  }
  [[nodiscard]] const std::vector<std::string>& lines() const { return lines_; }

 private:
  [[nodiscard]] std::string place() const {
    const Coord& c = cost_.coord;
    return fmt::format("d={} i={} j={} k={}: ", c.d, c.i, c.j, c.k);
  }
  void line(const std::string& what, index_t formula, index_t counted) {
    lines_.push_back(fmt::format("{}{}: formula {}, program {}", place(), what, formula, counted));
  }
  void memory(const std::string& what, index_t formula, index_t counted) {
    const auto difference = static_cast<double>(std::abs(formula - counted));
    if (difference > kMemoryTolerance * static_cast<double>(counted)) line(what, formula, counted);
  }
  void bytes() {
    const std::string fault = difference(run_.counted, cost_.sent.ledger());
    if (!fault.empty()) lines_.push_back(place() + fault);
  }

  const RankCost& cost_;
  const RankPlan& run_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<RankCost> rank_costs(const Plan& plan) {
  const MeshShape mesh = plan.mesh();
  std::vector<RankCost> costs;
  for (const auto& [coord, ranks] : mesh.ranks() <= kSmallJob ? every_rank(mesh) : rank_kinds(plan))
    costs.push_back({coord, ranks, memory_cost(plan, coord), step_traffic(plan, coord),
                     step_work(plan, coord), parameters_at_rest(plan, coord)});
  return costs;
}

std::vector<std::string> check_costs(const Plan& plan, const OptimizerConfig& optimizer,
                                     const std::vector<RankCost>& costs) {
  const MeshShape mesh = plan.mesh();
  std::vector<std::string> lines;
  if (mesh.ranks() > kSmallJob) return lines;
  for (const RankKind& kind : rank_kinds(plan))
    for (const RankCost& cost : costs) {
      if (!(cost.coord == kind.coord)) continue;
      const RankPlan run = simulate_rank(plan, optimizer, mesh.rank_of(kind.coord));
      const CostCheck check(cost, run);
      lines.insert(lines.end(), check.lines().begin(), check.lines().end());
    }
  return lines;
}

}  // namespace t3d
