#include "forecast/plan_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/error.hpp"
#include "forecast/candidate_bounds.hpp"
#include "forecast/class_memory.hpp"
#include "forecast/forecaster.hpp"
#include "hetero/cost/flops.hpp"
#include "hetero/cost/memory.hpp"
#include "hetero/planner/planner.hpp"

namespace t3d {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kEqual = 1e-9;  // relative: prices that differ by rounding alone

class NodesSearch {
 public:
  NodesSearch(const SearchRequest& request, const std::vector<JobPart>& parts, ClusterRates& rates)
      : request_(request),
        rates_(rates),
        nodes_(rates.cluster(), parts),
        orders_(nodes_),
        members_(nodes_),
        bounds_(request.recipe.base.model, nodes_, rates, request.recipe.base.compute) {
    result_.parts = parts;
    recipe_ = request.recipe;
    recipe_.base.ranks = static_cast<int>(nodes_.ranks());
    recipe_.base.place.clear();
  }

  NodesSearched run() {
    std::vector<JobCandidate> left = candidates_of(request_, nodes_, left_out_);
    result_.candidates = std::ssize(left);
    for (JobCandidate& candidate : left) {
      candidate.ordered = !one_class();
      const AxisExtents extents = extents_of(candidate);
      candidate.bound = bounds_.seconds(candidate, recipe_,
                                        one_class() ? members_.fewest_at_best(extents)
                                                    : members_.most(usual_order(extents), extents));
    }
    const auto later = [](const JobCandidate& a, const JobCandidate& b) {
      return a.bound > b.bound;
    };
    std::make_heap(left.begin(), left.end(), later);
    while (!left.empty()) {
      std::pop_heap(left.begin(), left.end(), later);
      JobCandidate& next = left.back();
      if (one_class() && next.bound >= worst_kept()) break;
      if (!next.ordered) {
        next.ordered = true;
        next.bound = std::max(next.bound, least_bound(next));
        std::push_heap(left.begin(), left.end(), later);
        continue;
      }
      if (result_.priced == most_priced()) {
        result_.complete = false;
        break;
      }
      ++result_.priced;
      price(next);
      left.pop_back();
    }
    for (const auto& [why, one] : left_out_) result_.left_out.push_back(one);
    return std::move(result_);
  }

 private:
  [[nodiscard]] index_t most_priced() const {
    return one_class() ? request_.most_priced : request_.most_dealt;
  }
  [[nodiscard]] bool one_class() const { return result_.parts.size() == 1; }
  /// Nothing slower belongs to what is kept.
  [[nodiscard]] double worst_kept() const {
    return result_.plans.size() < request_.kept ? kInfinite : result_.plans.back().seconds();
  }

  [[nodiscard]] static AxisExtents extents_of(const JobCandidate& candidate) {
    return axis_extents(candidate.replicas, candidate.cuboid);
  }
  [[nodiscard]] double bound_of(const JobCandidate& candidate, const AxisOrder& order) {
    return bounds_.seconds(candidate, recipe_, members_.fewest(order, extents_of(candidate)));
  }
  /// Of all orders.
  [[nodiscard]] double least_bound(const JobCandidate& candidate) {
    double least = kInfinite;
    for (const AxisOrder& order : orders_.of(extents_of(candidate)))
      least = std::min(least, bound_of(candidate, order));
    return least;
  }

  void price(const JobCandidate& candidate) {
    PlanRecipe recipe = recipe_;
    recipe.micro = candidate.micro;
    recipe.base.recompute = candidate.recompute;
    try {
      FoundPlan found;
      found.parts = result_.parts;
      if (one_class()) {
        found.plan = even_plan(recipe, candidate);
        take_best_order(candidate, found);
      } else {
        found.plan = dealt_plan(recipe, candidate);
        found.forecast = forecast_step(found.plan, nodes_, rates_);
      }
      if (!std::isfinite(found.seconds()))
        leave_out("rates are missing", missing_rates(found.forecast.terms), 0);
      else if (found.seconds() < worst_kept() && fits(candidate, found))
        keep(std::move(found));
    } catch (const Error& error) {
      if (error.code() != ExitCode::config && error.code() != ExitCode::unavailable) throw;
      leave_out("no plan of this shape", error.what(), 0);
    }
  }

  /// The usual order's forecast, or that of the best one that is faster; those that cannot be are
  /// not looked at.
  void take_best_order(const JobCandidate& candidate, FoundPlan& found) {
    Forecaster forecaster(found.plan, nodes_, rates_);
    found.forecast = forecaster.step();
    const double usual = found.seconds();
    const std::vector<AxisOrder> orders = orders_.of(extents_of(candidate));
    std::size_t best = 0;  // the usual one
    for (std::size_t at = 1; at < orders.size(); ++at) {
      if (bound_of(candidate, orders[at]) >= std::min(found.seconds(), worst_kept())) continue;
      const StepForecast other = forecaster.step(orders[at]);
      if (other.seconds() >= found.seconds() * (1 - kEqual)) continue;
      found.forecast = other;
      best = at;
    }
    if (best == 0) return;
    found.plan.place = place_of(orders[best], extents_of(candidate));
    found.usual_seconds = usual;
  }

  [[nodiscard]] std::string missing_rates(const ForecastTerms& terms) const {
    for (std::size_t at = 0; at < kOperatorKinds; ++at)
      for (const JobPart& part : result_.parts) {
        const auto kind = static_cast<OperatorKind>(at);
        if (std::isfinite(terms.operators[at]) ||
            rates_.knows(part.node_class, kind, recipe_.base.compute))
          continue;
        return fmt::format("class {} has no [[operator]] of kind {} for {}: calibrate it",
                           rates_.cluster().classes[part.node_class].name, word_of(kind),
                           word_of(recipe_.base.compute));
      }
    return "numbers of the cluster's file are too large";
  }

  [[nodiscard]] static Plan even_plan(const PlanRecipe& recipe, const JobCandidate& candidate) {
    PlanShape shape;
    for (const index_t sequences :
         Partition::even("shares", recipe.sequences, candidate.replicas).sizes()) {
      shape.replicas.emplace_back();
      shape.replicas.back().cuboid = candidate.cuboid;
      shape.replicas.back().sequences = sequences;
    }
    return build_plan(recipe, shape);
  }

  /// Widths and shares by the speed that the classes have at the even plan's shapes.
  [[nodiscard]] Plan dealt_plan(const PlanRecipe& recipe, const JobCandidate& candidate) {
    const Plan even = even_plan(recipe, candidate);
    PlanRequest request;
    request.recipe = recipe;
    request.replicas = candidate.replicas;
    request.cuboids = {candidate.cuboid};
    request.exchanges = false;
    return plan_shape(request, speeds_at(even)).plan;
  }

  [[nodiscard]] Speeds speeds_at(const Plan& even) {
    const StepWork work = step_work(even, Coord{});
    const std::vector<OperatorCall> calls = step_calls(even, Coord{});
    std::vector<RankSpeed> of_class(rates_.cluster().classes.size());
    for (const JobPart& part : result_.parts) {
      std::array<double, kWorkClasses> seconds{};
      for (const OperatorCall& call : calls)
        seconds[work_class(call.kind)] +=
            call.times * (rates_.seconds(part.node_class, even.compute, call) +
                          rates_.launch_seconds(part.node_class));
      RankSpeed& speed = of_class[part.node_class];
      const NodeClass& own = rates_.cluster().classes[part.node_class];
      speed.device = own.device;
      speed.free_bytes = room(own);
      for (std::size_t kind = 0; kind < kWorkClasses; ++kind)
        if (const double amount = work_of(work, static_cast<WorkClass>(kind));
            amount > 0 && seconds[kind] > 0)
          speed.curves[kind] = TimeCurve::of_rate(amount / seconds[kind]);
    }
    Speeds speeds;
    for (index_t rank = 0; rank < nodes_.ranks(); ++rank) {
      const JobNodes::Seat seat = nodes_.seat(rank);
      speeds.ranks.push_back(of_class[seat.node_class]);
      speeds.ranks.back().node = fmt::format("{}", seat.node);
    }
    return speeds;
  }

  [[nodiscard]] static std::size_t work_class(OperatorKind kind) {
    switch (kind) {
      case OperatorKind::matmul: return static_cast<std::size_t>(WorkClass::matmul);
      case OperatorKind::attention_forward:
      case OperatorKind::attention_backward: return static_cast<std::size_t>(WorkClass::attention);
      case OperatorKind::whole: return static_cast<std::size_t>(WorkClass::whole);
      default: return static_cast<std::size_t>(WorkClass::streamed);
    }
  }

  [[nodiscard]] index_t room(const NodeClass& own) const {
    return static_cast<index_t>(static_cast<double>(own.memory_bytes) * request_.memory_part);
  }

  /// class_memory() where cuts are even: the first rank of each slab has the largest parts of it.
  [[nodiscard]] std::vector<ClassMemory> first_ranks_memory(const Plan& plan) const {
    const std::size_t own = result_.parts.front().node_class;
    const bool on_gpu = rates_.cluster().classes[own].device != "cpu";
    std::vector<ClassMemory> most(rates_.cluster().classes.size());
    std::set<index_t> seen;
    const auto memo = std::make_shared<CostMemo>();
    for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
      const Partition& tokens = plan.replica(d).tokens.back();
      for (index_t i = 0; i < tokens.parts(); ++i)
        if (seen.insert(tokens.size(i)).second)
          most[own].needed_bytes = std::max(
              most[own].needed_bytes, needed_bytes(memory_cost(plan, {d, i, 0, 0}, memo), on_gpu));
    }
    return most;
  }

  [[nodiscard]] bool fits(const JobCandidate& candidate, FoundPlan& found) {
    double least = kInfinite;
    const std::vector<ClassMemory> most =
        one_class() ? first_ranks_memory(found.plan) : class_memory(found.plan, nodes_);
    for (const JobPart& part : result_.parts) {
      const NodeClass& own = rates_.cluster().classes[part.node_class];
      const index_t needed = most[part.node_class].needed_bytes;
      const double left =
          own.memory_bytes > 0 ? static_cast<double>(room(own) - needed) : kInfinite;
      if (found.needed_bytes == 0 || left < least) {
        least = left;
        found.needed_bytes = needed;
        found.room_bytes = own.memory_bytes > 0 ? room(own) : 0;
      }
    }
    if (least >= 0) return true;
    leave_out("memory",
              fmt::format("{} needs {:.0f} MiB of {:.0f}", candidate.text(),
                          static_cast<double>(found.needed_bytes) / 1048576,
                          static_cast<double>(found.room_bytes) / 1048576),
              -least);
    return false;
  }

  void leave_out(const std::string& why, const std::string& what, double lack) {
    LeftOut& one = left_out_[why];
    one.why = why;
    if (one.count == 0 || lack < lacks_[why]) {
      one.nearest = what;
      lacks_[why] = lack;
    }
    ++one.count;
  }

  void keep(FoundPlan found) {
    const auto place = std::upper_bound(
        result_.plans.begin(), result_.plans.end(), found,
        [](const FoundPlan& a, const FoundPlan& b) { return a.seconds() < b.seconds(); });
    result_.plans.insert(place, std::move(found));
    if (result_.plans.size() > request_.kept) result_.plans.pop_back();
  }

  const SearchRequest& request_;
  ClusterRates& rates_;
  JobNodes nodes_;
  DistinctOrders orders_;
  NodeMembers members_;
  CandidateBounds bounds_;
  PlanRecipe recipe_;
  NodesSearched result_;
  LeftOutMap left_out_;
  std::map<std::string, double> lacks_;
};

/// What a job may have of a class: its partition may have a limit.
index_t job_nodes_of(const NodeClass& own, const Cluster& cluster) {
  const SchedulerPartition* const partition = cluster.find_partition(own);
  return partition != nullptr && partition->most_nodes > 0
             ? std::min(own.nodes, partition->most_nodes)
             : own.nodes;
}

/// 1, 2, 3, 4, 6, 8, 12, ..., most.
std::vector<index_t> ladder(index_t most) {
  std::set<index_t> numbers{most};
  for (index_t two = 1; two <= most; two *= 2) {
    numbers.insert(two);
    if (3 * two <= most) numbers.insert(3 * two);
  }
  return {numbers.begin(), numbers.end()};
}

}  // namespace

NodesSearched search_nodes(const SearchRequest& request, const std::vector<JobPart>& parts,
                           ClusterRates& rates) {
  return NodesSearch(request, parts, rates).run();
}

std::vector<std::vector<JobPart>> node_sets(const SearchRequest& request, const Cluster& cluster) {
  std::vector<std::vector<JobPart>> sets;
  const index_t most =
      request.most_nodes > 0 ? request.most_nodes : std::numeric_limits<index_t>::max();
  const auto add = [&](std::vector<JobPart> parts) {
    index_t nodes = 0;
    for (const JobPart& part : parts) nodes += part.nodes;
    const bool wanted = request.nodes > 0 ? nodes == request.nodes : nodes <= most;
    if (wanted && std::find(sets.begin(), sets.end(), parts) == sets.end())
      sets.push_back(std::move(parts));
  };
  const std::size_t classes = cluster.classes.size();
  std::vector<index_t> available;  // to one job, by class
  for (const NodeClass& one : cluster.classes) available.push_back(job_nodes_of(one, cluster));
  for (std::size_t one = 0; one < classes; ++one) {
    const index_t all = std::min(available[one], most);
    for (const index_t nodes : ladder(all)) add({{one, nodes}});
    if (request.nodes > 0 && request.nodes <= all) add({{one, request.nodes}});
  }
  const std::size_t mixed = std::min(classes, kMostMixedClasses);
  for (std::size_t subset = 1; subset < std::size_t{1} << mixed; ++subset) {
    std::vector<JobPart> parts;
    for (std::size_t one = 0; one < classes; ++one)
      if ((subset >> one & 1U) != 0) parts.push_back({one, available[one]});
    if (parts.size() < 2) continue;
    for (const index_t divisor : {1, 2}) {
      std::vector<JobPart> some = parts;
      for (JobPart& part : some) part.nodes = std::max<index_t>(1, part.nodes / divisor);
      add(std::move(some));
    }
  }
  return sets;
}

}  // namespace t3d
