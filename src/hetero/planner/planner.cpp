#include "hetero/planner/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "core/error.hpp"
#include "hetero/planner/arrangement.hpp"
#include "hetero/planner/dealt_plan.hpp"
#include "hetero/planner/feature_widths.hpp"
#include "hetero/planner/matrix_speeds.hpp"
#include "hetero/planner/memory_fit.hpp"
#include "hetero/planner/rank_order.hpp"
#include "hetero/planner/slab_seconds.hpp"

namespace t3d {
namespace {

/// A plan that is less simple must be faster by this, so that roundings decide nothing.
constexpr double kWorthwhile = 1e-3;
/// Feature widths are solved for where ranks wait for others of their slab for more than this part
/// of their time: widths can gain no more.
constexpr double kFeatureLoss = 0.02;
/// Different widths of the replicas make aggregation's messages dear to predict.
constexpr index_t kMostMixedRanks = 64;
/// Slots of a plan that is improved by exchanges, and how many widths are tried.
constexpr index_t kMostExchanged = 16;
constexpr int kWidthTrials = 100;

struct Priced {
  std::string name;
  DealtPlan dealt;
  StepSeconds seconds;
};

class ShapePlanner {
 public:
  ShapePlanner(const PlanRequest& request, const Speeds& speeds)
      : request_(request), recipe_(request.recipe), speeds_(speeds) {
    T3D_CHECK(request.replicas && !request.cuboids.empty(), "a shape without extents");
    const index_t replicas = *request.replicas;
    even_.place = request.place;
    for (const index_t n : Partition::even("shares", recipe_.sequences, replicas).sizes()) {
      ReplicaShape replica = request.cut;
      replica.cuboid = request.cuboids[request.cuboids.size() == 1 ? 0 : even_.replicas.size()];
      replica.sequences = n;
      slots_ += replica.cuboid[0] * replica.cuboid[1] * replica.cuboid[2];
      even_.replicas.push_back(replica);
    }
    usual_ = usual_work();
  }

  PlanChoice choose() {
    add_even();
    if (!speeds_.equal(usual_, request_.tolerance) || best_ == nullptr) add_dealt();
    if (best_ == nullptr)
      throw_error(ExitCode::unavailable, "the model does not fit into memory: {}", shortage_);
    return choice();
  }

 private:
  /// What one of the ranks computes if all do the same.
  [[nodiscard]] StepWork usual_work() const {
    double slabs = 0;
    for (const ReplicaShape& replica : even_.replicas)
      slabs += static_cast<double>(replica.cuboid[0]);
    const std::vector<LinearWork> work = slab_work(recipe_, even_.replicas.front());
    return work.front().step(static_cast<double>(recipe_.sequences) / slabs);
  }

  void add_even() {
    DealtPlan even{build_plan(recipe_, even_), even_, {}};
    const auto short_of = memory_shortages(even.plan, speeds_);
    if (short_of.empty())
      price("even", std::move(even));
    else
      note_shortage("even", short_of.front().text());
  }

  void add_dealt() {
    if (request_.place.empty())
      add_orders();
    else
      add_place("", request_.place);
    if (best_ != nullptr && request_.feature_widths) add_feature_widths();
    if (request_.exchanges || best_ == nullptr) add_exchanges();
  }

  /// Links between nodes are much slower than inside them, and lines of ranks may fit into a node.
  [[nodiscard]] bool nodes_matter() const {
    constexpr double kMuchSlower = 1.5;
    const auto& [alpha, beta] = speeds_.inside;
    return speeds_.between.alpha_seconds > kMuchSlower * alpha ||
           speeds_.between.beta_seconds_per_byte > kMuchSlower * beta;
  }

  void add_orders() {
    const RankOrder by_speed = order_by_speed(speeds_, usual_);
    add_order("by speed", by_speed);
    if (!nodes_matter()) return;
    const RankOrder by_node = order_by_node(speeds_, usual_);
    if (by_node.ranks != by_speed.ranks) add_order("by node", by_node);
  }

  void add_order(const std::string& name, const RankOrder& order) {
    if (std::ssize(order.ranks) < slots_)
      throw_error(ExitCode::config,
                  "the mesh needs {} ranks, and {} of {} have a speed for all of their work: {}",
                  slots_, order.ranks.size(), speeds_.ranks.size(), lacking_speed(speeds_, usual_));
    add_place("ranks " + name, {order.ranks.begin(), order.ranks.begin() + slots_});
    // Whole replicas of equal speed matter only where they are divided into micro-batches.
    const bool in_passes = recipe_.micro > 0 || recipe_.leaves > 1;
    const Cuboid& cuboid = even_.replicas.front().cuboid;
    const bool alike =
        std::all_of(even_.replicas.begin(), even_.replicas.end(),
                    [&](const ReplicaShape& replica) { return replica.cuboid == cuboid; });
    if (!in_passes || even_.replicas.size() < 2 || !alike) return;
    const auto& [p, q, r] = cuboid;
    add_place("replicas alike, ranks " + name,
              mixed_place(order, std::ssize(even_.replicas), p, q * r));
  }

  void add_place(const std::string& name, std::vector<int> place) {
    PlanShape shape = even_;
    shape.place = std::move(place);
    finish_places(shape);
    add(name.empty() ? "sequences by speed" : "sequences by speed, " + name, std::move(shape));
  }

  /// What follows from the places: the first ranks in order need no list.
  void finish_places(PlanShape& shape) const {
    const auto count = static_cast<std::size_t>(slots_);
    bool in_order = shape.place.size() == count && request_.place.empty();
    for (std::size_t slot = 0; in_order && slot < count; ++slot)
      in_order = shape.place[slot] == static_cast<int>(slot);
    if (in_order) shape.place.clear();
    for (ReplicaShape& replica : shape.replicas) replica.whole.clear();
    set_matrix_speeds(recipe_, speeds_, request_.tolerance, shape);
  }

  void add(const std::string& name, PlanShape shape) {
    DealtPlan dealt;
    try {
      dealt = dealt_plan(recipe_, request_.unit, std::move(shape), speeds_);
    } catch (const Error& error) {
      note_shortage(name, error.what());
      return;
    }
    if (dealt.shortage.empty())
      price(name, std::move(dealt));
    else
      note_shortage(name, dealt.shortage);
  }

  [[nodiscard]] bool may_cut_features() const {
    const bool alone = even_.replicas.size() == 1;
    const bool flat = recipe_.base.aggregate.method == AggregateMethod::adasum &&
                      recipe_.base.aggregate.algorithm == AggregateAlgorithm::flat;
    return alone || (!flat && slots_ <= kMostMixedRanks);
  }

  /// Cuts of features are tried on the best arrangement that sequences alone gave.
  void add_feature_widths() {
    if (!may_cut_features()) return;
    if (waiting_in_slabs(best_->dealt.shape) <= kFeatureLoss) return;
    const DealtPlan base = best_->dealt;
    for (const WidthLattice lattice :
         {WidthLattice::groups, WidthLattice::ffn, WidthLattice::both}) {
      PlanShape shape = base.shape;
      if (!set_widths(lattice, shape)) continue;
      add(lattice == WidthLattice::groups ? "widths of features in whole heads"
          : lattice == WidthLattice::ffn  ? "widths of features"
                                          : "widths of features, ffn beside whole heads",
          std::move(shape));
    }
  }

  /// Of few ranks, single exchanges on the best plan so far find better ones.
  void add_exchanges() {
    if (slots_ > kMostExchanged || std::ssize(speeds_.ranks) > 2 * kMostExchanged) return;
    ArrangementLimits limits;
    for (std::size_t rank = 0; rank < speeds_.ranks.size(); ++rank)
      if (std::isfinite(speeds_.ranks[rank].seconds(usual_)))
        limits.ranks.push_back(static_cast<int>(rank));
    limits.places = request_.place.empty() && !nodes_matter();
    limits.widths = request_.feature_widths && may_cut_features();
    limits.width_trials = kWidthTrials;
    // Where no plan fits so far, exchanges may make one.
    PlanShape start = best_ != nullptr ? best_->dealt.shape : even_;
    if (std::ssize(limits.ranks) < slots_) return;
    if (best_ == nullptr && limits.places)
      start.place.assign(limits.ranks.begin(), limits.ranks.begin() + slots_);
    add_exchanged("exchanges of places and widths", start, limits);
    if (!limits.places || !limits.widths) return;
    const index_t replicas = std::ssize(even_.replicas), p = even_.replicas.front().cuboid[0];
    for (const index_t groups : std::set<index_t>{1, p > 1 ? replicas : 1})
      if (PlanShape mixed = even_; mix_slabs(groups, mixed))
        add_exchanged("unlike ranks in every slab, exchanges of places and widths", mixed, limits);
  }

  void add_exchanged(const std::string& name, const PlanShape& start,
                     const ArrangementLimits& limits) {
    PlanShape shape = better_arrangement(recipe_, request_.unit, start, speeds_, limits);
    finish_places(shape);
    // Dealt exactly already, but where leaves move whole; where memory binds it is dealt anew.
    DealtPlan dealt{build_plan(recipe_, shape), shape, {}};
    if (recipe_.leaves == 1 && memory_shortages(dealt.plan, speeds_).empty())
      price(name, std::move(dealt));
    else
      add(name, std::move(shape));
  }

  /// The fastest ranks at one place of every slab, the next at another, and widths by it: slabs are
  /// about equally fast, which suits few sequences. So in each of `groups` groups of slabs, which
  /// are sorted by speed. False where there is nothing to mix.
  [[nodiscard]] bool mix_slabs(index_t groups, PlanShape& shape) const {
    const auto& [p, q, r] = even_.replicas.front().cuboid;
    const RankOrder order = order_by_speed(speeds_, usual_);
    const index_t slabs = slots_ / (q * r * groups);  // of a group
    if (request_.cuboids.size() > 1 || q * r == 1 || slabs == 1 || std::ssize(order.ranks) < slots_)
      return false;
    for (index_t slot = 0; slot < slots_; ++slot) {
      const index_t slab = slot / (q * r), first = slab / slabs * slabs * q * r;
      shape.place.push_back(order.ranks[static_cast<std::size_t>(
          first + slot % (q * r) * slabs +
          (slot % (q * r) % 2 == 0 ? slab % slabs : slabs - 1 - slab % slabs))]);
    }
    return set_widths(WidthLattice::both, shape);
  }

  [[nodiscard]] double rate(const PlanShape& shape, std::size_t slot) const {
    const std::size_t rank =
        shape.place.empty() ? slot : static_cast<std::size_t>(shape.place[slot]);
    return 1 / speeds_.ranks[rank].seconds(usual_);
  }

  /// Part of the speed of all ranks that is lost if every rank of a slab works like its slowest.
  [[nodiscard]] double waiting_in_slabs(const PlanShape& shape) const {
    double all = 0, used = 0;
    std::size_t slot = 0;
    for (const ReplicaShape& replica : shape.replicas) {
      const index_t size = replica.cuboid[1] * replica.cuboid[2];
      for (index_t i = 0; i < replica.cuboid[0]; ++i) {
        double least = std::numeric_limits<double>::infinity();
        for (index_t at = 0; at < size; ++at, ++slot) {
          least = std::min(least, rate(shape, slot));
          all += rate(shape, slot);
        }
        used += static_cast<double>(size) * least;
      }
    }
    return 1 - used / all;
  }

  /// False where no replica has anything to cut, or nothing can be cut.
  bool set_widths(WidthLattice lattice, PlanShape& shape) const {
    bool any = false;
    std::size_t slot = 0;
    for (ReplicaShape& replica : shape.replicas) {
      const auto& [p, q, r] = replica.cuboid;
      std::vector<double> rates;
      for (index_t at = 0; at < p * q * r; ++at, ++slot) rates.push_back(rate(shape, slot));
      if (q * r == 1) continue;
      try {
        set_feature_widths(recipe_.base.model, rates, lattice, replica);
      } catch (const Error&) {
        return false;
      }
      any = true;
    }
    return any;
  }

  void price(const std::string& name, DealtPlan dealt) {
    Priced priced{name, std::move(dealt), {}};
    priced.seconds = predict_step(priced.dealt.plan, speeds_);
    if (!std::isfinite(priced.seconds.step)) return note_shortage(name, "a rank has speed 0");
    lines_.push_back(line(priced));
    if (best_ == nullptr || priced.seconds.step < (1 - kWorthwhile) * best_->seconds.step) {
      best_ = std::make_unique<Priced>(std::move(priced));
      chosen_ = lines_.size() - 1;
    }
  }

  [[nodiscard]] static std::string line(const Priced& priced) {
    const StepSeconds& s = priced.seconds;
    const Plan& plan = priced.dealt.plan;
    const std::size_t slot = s.slowest_slot();
    return fmt::format(
        "{:.4g} ms: {} (compute {:.4g} ms, longest on rank {}; messages {:.4g} ms; {:.1f} % of the "
        "ranks' speed)",
        1e3 * s.step, priced.name, 1e3 * s.compute(),
        plan.place.empty() ? static_cast<int>(slot) : plan.place[slot],
        1e3 * (s.step - s.compute()), 100 * s.efficiency());
  }

  void note_shortage(const std::string& name, const std::string& what) {
    shortage_ = what;
    lines_.push_back(fmt::format("impossible: {}: {}", name, what));
  }

  PlanChoice choice() {
    PlanChoice choice{best_->dealt.plan, best_->seconds, best_->seconds.bound, 0, {}};
    choice.gap = choice.predicted.step / choice.bound - 1;
    choice.why.push_back(lines_[chosen_]);
    for (std::size_t at = 0; at < lines_.size(); ++at)
      if (at != chosen_) choice.why.push_back(lines_[at]);
    return choice;
  }

  const PlanRequest& request_;
  const PlanRecipe& recipe_;
  const Speeds& speeds_;
  PlanShape even_;
  index_t slots_ = 0;
  StepWork usual_;
  std::unique_ptr<Priced> best_;
  std::size_t chosen_ = 0;  // in lines_
  std::vector<std::string> lines_;
  std::string shortage_;
};

}  // namespace

PlanChoice plan_shape(const PlanRequest& request, const Speeds& speeds) {
  if (std::ssize(speeds.ranks) != request.recipe.base.ranks)
    throw_error(ExitCode::config, "speeds of {} ranks for a job of {}", speeds.ranks.size(),
                request.recipe.base.ranks);
  if (request.unit < 1 || request.recipe.sequences % request.unit != 0)
    throw_error(ExitCode::config, "{} sequences in units of {}", request.recipe.sequences,
                request.unit);
  return ShapePlanner(request, speeds).choose();
}

}  // namespace t3d
