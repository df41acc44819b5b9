// The choice of the mesh: enumeration, estimates, exact prices of the best few.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.hpp"
#include "core/portable_math.hpp"
#include "hetero/planner/memory_estimate.hpp"
#include "hetero/planner/planner.hpp"
#include "hetero/planner/shape_estimate.hpp"

namespace t3d {
namespace {

constexpr index_t kAllExtents = 32;      // up to so many ranks every extent is tried
constexpr index_t kCheapWidths = 16;     // and feature widths of every plan
constexpr std::size_t kMostFailed = 12;  // plans that do not fit before it is given up
constexpr double kWorthwhile = 1e-3;     // as in plan_shape
constexpr double kAlike = 3e-3;          // estimates so close prefer the simpler mesh

/// Small ones, those of two and three, and divisors.
std::vector<index_t> extents(index_t ranks) {
  std::vector<index_t> all;
  for (index_t n = 1; n <= ranks; ++n) {
    const index_t odd = n / (n & -n);
    if (ranks <= kAllExtents || odd == 1 || odd == 3 || ranks % n == 0) all.push_back(n);
  }
  return all;
}

struct Estimated {
  MeshCandidate mesh;
  double seconds = 0;
  double level = 0;            // equal where seconds are about equal
  bool memory_counts = false;  // the estimate knows of the ranks' memory

  bool operator<(const Estimated& other) const {
    if (level != other.level) return level < other.level;
    if (mesh.complexity() != other.mesh.complexity())
      return mesh.complexity() < other.mesh.complexity();
    return mesh.cuboid > other.mesh.cuboid;
  }
};

class JobPlanner {
 public:
  JobPlanner(const PlanRequest& request, const Speeds& speeds)
      : request_(request),
        model_(request.recipe.base.model),
        speeds_(speeds),
        estimates_(request, speeds),
        most_slabs_(request.recipe.sequences / request.unit),
        extents_(extents(estimates_.ranks())),
        memory_(request.recipe, speeds, estimates_.order()) {}

  PlanChoice choose() {
    find_candidates();
    const std::size_t wanted = plans_to_price();
    for (std::size_t failed = 0;
         !open_.empty() && priced_.size() < wanted && failed < kMostFailed;) {
      const Estimated next = *open_.begin();
      open_.erase(open_.begin());
      if (memory_.known() && !next.memory_counts)
        look_at_memory(next.mesh);
      else if (!price(next.mesh))
        ++failed;
    }
    if (priced_.empty()) refuse();
    std::stable_sort(priced_.begin(), priced_.end(), [](const Priced& a, const Priced& b) {
      return a.choice.predicted.step < b.choice.predicted.step;
    });
    choose_simplest();
    Priced& best = priced_.front();
    const auto& [p, q, r] = best.mesh.cuboid;
    if (q * r > 1 && (request_.feature_widths || request_.exchanges))
      best.choice = plan_of(best.mesh, true);
    return result();
  }

 private:
  /// The more ranks, the longer a plan takes, and the better estimates are.
  [[nodiscard]] std::size_t plans_to_price() const {
    const index_t ranks = estimates_.ranks();
    return ranks <= 64 ? 6 : ranks <= 1024 ? 4 : ranks <= 16384 ? 3 : 2;
  }

  struct Priced {
    MeshCandidate mesh;
    PlanChoice choice;
  };

  void find_candidates() {
    for (const index_t d : replica_counts())
      for (const Cuboid& cuboid : cuboids(d)) {
        const MeshCandidate mesh{d, cuboid};
        if (mesh.ranks() <= estimates_.ranks()) add(mesh, estimates_.seconds(mesh), false);
      }
  }

  void add(const MeshCandidate& mesh, double seconds, bool memory_counts) {
    open_.insert(
        {mesh, seconds, std::floor(portable::natural_log(seconds) / kAlike), memory_counts});
  }

  /// Only of those that are next: memory makes no mesh faster.
  void look_at_memory(const MeshCandidate& mesh) {
    const MemoryEstimate::Limits limits = memory_.limits(mesh.replicas, mesh.cuboid);
    if (limits.missing_bytes <= 0) return add(mesh, estimates_.seconds(mesh, limits.most), true);
    memory_short_ = true;
    rejected_.push_back(fmt::format("{}: about {:.4g} MiB of memory are missing", mesh.text(),
                                    limits.missing_bytes / 1048576));
  }

  [[nodiscard]] std::vector<index_t> replica_counts() const {
    if (request_.replicas) return {*request_.replicas};
    const PlanRecipe& recipe = request_.recipe;
    index_t most = std::min(estimates_.ranks(), most_slabs_);
    if (recipe.base.aggregate.method == AggregateMethod::adasum)
      most = std::min(most, kMostLeaves / recipe.leaves);
    std::vector<index_t> counts;
    for (const index_t n : extents_)
      if (n == 1 || n <= most) counts.push_back(n);
    return counts;
  }

  /// Every slab gets a sequence, every rank a group of heads or, over k, a sequence of its own, and
  /// some hidden units.
  [[nodiscard]] std::vector<Cuboid> cuboids(index_t d) const {
    if (!request_.cuboids.empty()) return request_.cuboids;
    constexpr index_t kLeastHidden = 16;
    std::vector<Cuboid> all;
    for (const index_t q : extents_) {
      if (q > model_.kv_heads) break;
      for (const index_t r : extents_) {
        if (d * q * r > estimates_.ranks() ||
            r > std::max<index_t>(1, model_.hidden / kLeastHidden))
          break;
        for (const index_t p : slab_counts(d, q * r))
          if (r <= std::max(model_.kv_heads / q, most_slabs_ / (d * p))) all.push_back({p, q, r});
      }
    }
    return all;
  }

  [[nodiscard]] std::set<index_t> slab_counts(index_t d, index_t size) const {
    std::set<index_t> counts;
    const index_t most = std::max<index_t>(1, most_slabs_ / d);
    const index_t all = estimates_.ranks() / (d * size);
    if (estimates_.ranks() <= kAllExtents) {
      for (index_t p = 1; p <= std::min(all, most); ++p) counts.insert(p);
      return counts;
    }
    for (const index_t ranks : estimates_.useful_ranks())
      counts.insert(std::clamp<index_t>(ranks / (d * size), 1, most));
    return counts;
  }

  [[nodiscard]] PlanChoice plan_of(const MeshCandidate& mesh, bool finally) const {
    PlanRequest request = request_;
    request.replicas = mesh.replicas;
    request.cuboids = {mesh.cuboid};
    request.feature_widths &= finally || estimates_.ranks() <= kCheapWidths;
    request.exchanges &= finally;
    return plan_shape(request, speeds_);
  }

  bool price(const MeshCandidate& mesh) {
    try {
      priced_.push_back({mesh, plan_of(mesh, false)});
    } catch (const Error& error) {
      memory_short_ = memory_short_ || error.code() == ExitCode::unavailable;
      rejected_.push_back(fmt::format("{}: {}", mesh.text(), error.what()));
      return false;
    }
    return true;
  }

  [[noreturn]] void refuse() const {
    throw_error(memory_short_ ? ExitCode::unavailable : ExitCode::config,
                "no mesh of {} ranks is possible; {}", estimates_.ranks(),
                rejected_.empty() ? "none has the wanted extents" : rejected_.front());
  }

  void choose_simplest() {
    const double limit = priced_.front().choice.predicted.step / (1 - kWorthwhile);
    auto best = priced_.begin();
    for (auto other = priced_.begin(); other != priced_.end(); ++other)
      if (other->choice.predicted.step <= limit &&
          other->mesh.complexity() < best->mesh.complexity())
        best = other;
    std::rotate(priced_.begin(), best, best + 1);
  }

  PlanChoice result() {
    PlanChoice choice = priced_.front().choice;
    const double best = choice.predicted.step;
    choice.why.clear();
    for (const Priced& priced : priced_)
      choice.why.push_back(fmt::format("{} ({:+.1f} %): {}", priced.mesh.text(),
                                       100 * (priced.choice.predicted.step / best - 1),
                                       priced.choice.why.front()));
    constexpr std::size_t kShown = 4;
    std::size_t shown = kShown;
    for (std::size_t at = 0; at < std::min(kShown, rejected_.size()); ++at)
      choice.why.push_back(rejected_[at]);
    for (auto next = open_.begin(); next != open_.end() && shown-- > 0; ++next)
      choice.why.push_back(
          fmt::format("{}: about {:.4g} ms by estimate", next->mesh.text(), 1e3 * next->seconds));
    return choice;
  }

  const PlanRequest& request_;
  const ModelConfig& model_;
  const Speeds& speeds_;
  ShapeEstimates estimates_;
  index_t most_slabs_;
  std::vector<index_t> extents_;
  MemoryEstimate memory_;
  std::set<Estimated> open_;  // not priced yet, the best estimate first
  std::vector<Priced> priced_;
  std::vector<std::string> rejected_;
  bool memory_short_ = false;  // for one of them
};

}  // namespace

PlanChoice plan_job(const PlanRequest& request, const Speeds& speeds) {
  if (request.cuboids.size() > 1 || (request.replicas && !request.cuboids.empty())) {
    PlanRequest all = request;
    if (!all.replicas) all.replicas = std::ssize(all.cuboids);
    return plan_shape(all, speeds);
  }
  return JobPlanner(request, speeds).choose();
}

}  // namespace t3d
