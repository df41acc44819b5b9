#include "hetero/planner/step_seconds.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "hetero/planner/message_seconds.hpp"
#include "hetero/planner/slab_key.hpp"

namespace t3d {
namespace {

using ClassWork = std::array<double, kWorkClasses>;
constexpr auto kWhole = static_cast<std::size_t>(WorkClass::whole);
constexpr auto kMatmul = static_cast<std::size_t>(WorkClass::matmul);

/// Linears beside attention, linears of the feed-forward part, head: a slab's ranks meet at each.
using ProductSeconds = std::array<double, 3>;

/// `seconds` of a rank's products, divided among the three by their work.
void keep_slowest(const StepWork& work, double seconds, ProductSeconds& slowest) {
  if (work.matmul == 0) return;
  const std::array<index_t, 3> parts{work.around_attention, work.feed_forward,
                                     work.matmul - work.around_attention - work.feed_forward};
  for (std::size_t at = 0; at < parts.size(); ++at)
    slowest[at] = std::max(
        slowest[at], seconds * static_cast<double>(parts[at]) / static_cast<double>(work.matmul));
}

index_t slots_of(const Cuboid& cuboid) { return cuboid[0] * cuboid[1] * cuboid[2]; }

std::size_t index_of_largest(const Partition& cut) {
  const std::vector<index_t> sizes = cut.sizes();
  return static_cast<std::size_t>(std::max_element(sizes.begin(), sizes.end()) - sizes.begin());
}

class Prediction {
 public:
  Prediction(const Plan& plan, const Speeds& speeds) : plan_(plan), speeds_(speeds), keys_(plan) {
    if (std::ssize(speeds.ranks) != plan.ranks)
      throw_error(ExitCode::config, "speeds of {} ranks for a job of {}", speeds.ranks.size(),
                  plan.ranks);
    std::map<std::string, int> numbers;
    for (const RankSpeed& rank : speeds.ranks)
      nodes_.push_back(numbers.emplace(rank.node, static_cast<int>(numbers.size())).first->second);
  }

  StepSeconds run() {
    for (index_t d = 0; d < std::ssize(plan_.replicas); ++d) {
      add_compute(d);
      add_messages(d);
      slot_ += static_cast<std::size_t>(slots_of(plan_.replica(d).cuboid));
    }
    for (const ReplicaSeconds& replica : result_.replicas)
      result_.step = std::max(result_.step, replica.sum());
    result_.step += result_.update_messages;
    result_.bound = work_bound(work_, speeds_);
    return std::move(result_);
  }

 private:
  [[nodiscard]] std::size_t world_rank(std::size_t slot) const {
    return plan_.place.empty() ? slot : static_cast<std::size_t>(plan_.place[slot]);
  }

  /// By (j, k).
  const std::vector<StepWork>& slab_work(index_t d, index_t i) {
    const auto [entry, is_new] = slabs_.try_emplace(keys_.key(d, i));
    if (is_new) {
      const auto& [p, q, r] = plan_.replica(d).cuboid;
      for (index_t j = 0; j < q; ++j)
        for (index_t k = 0; k < r; ++k)
          entry->second.push_back(step_work(plan_, {d, i, j, k}, memo_));
    }
    return entry->second;
  }

  void add_compute(index_t d) {
    std::size_t slot = slot_;
    ReplicaSeconds seconds;
    double matrices = 0;
    for (index_t i = 0; i < plan_.replica(d).cuboid[0]; ++i) {
      ClassWork slowest{};
      ProductSeconds products{};
      for (const StepWork& work : slab_work(d, i)) {
        const RankSpeed& rank = speeds_.ranks[world_rank(slot++)];
        double own = 0;
        for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
          const double amount = work_of(work, static_cast<WorkClass>(kind));
          const double taken = rank.curves[kind].seconds(amount);
          work_[kind] += amount;
          own += taken;
          slowest[kind] = std::max(slowest[kind], taken);
          if (kind == kMatmul) keep_slowest(work, taken, products);
        }
        result_.own.push_back(own);
      }
      matrices = std::max(matrices, std::exchange(slowest[kWhole], 0));
      slowest[kMatmul] = 0;
      for (const double taken : products) slowest[kMatmul] += taken;
      double slab = 0;
      for (const double taken : slowest) slab += taken;
      seconds.compute = std::max(seconds.compute, slab);
    }
    seconds.layers = seconds.compute;
    seconds.compute += matrices;
    result_.replicas.push_back(seconds);
  }

  /// Of a rank in the largest slab with the largest widths; replicas alike cost the same.
  void add_messages(index_t d) {
    const ReplicaPlan& replica = plan_.replica(d);
    const auto i = static_cast<index_t>(index_of_largest(replica.tokens.back()));
    const Coord coord{d, i, static_cast<index_t>(index_of_largest(replica.ffn)),
                      static_cast<index_t>(index_of_largest(replica.hidden))};
    const NodeCrossings crossings = crossings_of(d);
    const auto [entry, is_new] = messages_.try_emplace({keys_.key(d, i), crossings});
    if (is_new) entry->second = message_seconds(plan_, coord, speeds_, crossings, memo_);
    const MessageSeconds& taken = entry->second;
    ReplicaSeconds& seconds = result_.replicas.back();
    double micros = 0;
    for (const auto& leaf : replica.leaves) micros += static_cast<double>(leaf.size());
    const auto [own, over] = exposed_messages(
        taken.weights, seconds.layers,
        message_cover(plan_.aggregate.method, plan_.recompute, micros, on_gpus(d)));
    seconds.messages = taken.activations + own;
    result_.update_messages = std::max(result_.update_messages, taken.update + over);
  }

  [[nodiscard]] bool on_gpus(index_t d) const {
    for (index_t slot = 0; slot < slots_of(plan_.replica(d).cuboid); ++slot) {
      const std::string& device =
          speeds_.ranks[world_rank(slot_ + static_cast<std::size_t>(slot))].device;
      if (device.empty() || device == "cpu") return false;
    }
    return true;
  }

  [[nodiscard]] NodeCrossings crossings_of(index_t d) const {
    const auto& [p, q, r] = plan_.replica(d).cuboid;
    const auto node = [&](index_t i, index_t j, index_t k) {
      return nodes_[world_rank(slot_ + static_cast<std::size_t>((i * q + j) * r + k))];
    };
    NodeCrossings crossings;
    crossings.world = *std::max_element(nodes_.begin(), nodes_.end()) > 0;
    for (index_t i = 0; i < p; ++i)
      for (index_t j = 0; j < q; ++j)
        for (index_t k = 0; k < r; ++k) {
          const int here = node(i, j, k);
          crossings.i |= here != node(0, j, k);
          crossings.j |= here != node(i, 0, k);
          crossings.k |= here != node(i, j, 0);
        }
    return crossings;
  }

  const Plan& plan_;
  const Speeds& speeds_;
  SlabKeys keys_;
  CostMemoPtr memo_ = std::make_shared<CostMemo>();
  std::vector<int> nodes_;  // by world rank
  std::size_t slot_ = 0;    // first one of this replica
  std::map<SlabKeys::Key, std::vector<StepWork>> slabs_;
  std::map<std::pair<SlabKeys::Key, NodeCrossings>, MessageSeconds> messages_;
  ClassWork work_{};
  StepSeconds result_;
};

}  // namespace

double StepSeconds::compute() const {
  double most = 0;
  for (const ReplicaSeconds& replica : replicas) most = std::max(most, replica.compute);
  return most;
}

std::size_t StepSeconds::slowest_slot() const {
  return static_cast<std::size_t>(std::max_element(own.begin(), own.end()) - own.begin());
}

StepSeconds predict_step(const Plan& plan, const Speeds& speeds) {
  return Prediction(plan, speeds).run();
}

bool trusted(const Plan& plan, const Speeds& speeds) {
  const MeshShape mesh = plan.mesh();
  const auto memo = std::make_shared<CostMemo>();
  const std::vector<int> active = plan.active();
  for (std::size_t number = 0; number < active.size(); ++number) {
    const Coord coord = mesh.coord_of(static_cast<int>(number));
    if (!speeds.ranks[static_cast<std::size_t>(active[number])].trusts(
            step_work(plan, coord, memo)))
      return false;
  }
  return true;
}

double work_bound(const std::array<double, kWorkClasses>& work, const Speeds& speeds) {
  // If every class were divided perfectly.
  ClassWork together{};
  for (std::size_t kind = 0; kind < kWorkClasses; ++kind) {
    if (work[kind] <= 0) continue;
    double rate = 0;
    for (const RankSpeed& rank : speeds.ranks)
      rate += 1 / rank.curves[kind].least_seconds(work[kind]);
    if (rate == 0) return std::numeric_limits<double>::infinity();
    together[kind] = 1 / rate;
  }
  double all = 0, best = 0;
  for (const double seconds : together) all += seconds;
  for (const RankSpeed& rank : speeds.ranks) {
    double most = 0;
    for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
      if (work[kind] > 0)
        most = std::max(most, together[kind] / rank.curves[kind].least_seconds(work[kind]));
    best += most;
  }
  return best > 0 ? all / best : 0;
}

}  // namespace t3d
