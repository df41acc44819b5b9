// Which nodes of a cluster, and which shape on them: every mesh that the ranks of a set of nodes
// can form, with the sizes of micro-batches and the choices of memory, pruned by bounds and by
// memory, the rest priced by forecast_step() with every order of axes (axis_order.hpp) that
// differs on these nodes. Of orders that are equally fast the usual one is taken. Pure function of
// (request, cluster).
//
// A bound is what no plan of the candidate can beat: operators of the rank with the largest parts
// at the best rates of any class of the set, and the messages that it sends at least
// (candidate_bounds.hpp): at first as if every axis had its best place by itself, and, before
// the candidate is priced, by the best of its orders.
// Candidates are priced by ascending bound until a bound is above the best price, so the best plan
// of a set of equal nodes is that of complete enumeration unless `most_priced` ends it before.
// Plans of several classes are dealt out one by one (plan_shape()), which decides their places,
// too: the `most_dealt` that are best by an estimate.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "forecast/step_forecast.hpp"
#include "hetero/planner/build_plan.hpp"

namespace t3d {

struct SearchRequest {
  PlanRecipe recipe;  // its base.ranks is not read
  // What the user has decided.
  std::optional<index_t> replicas;
  std::optional<Cuboid> cuboid;
  bool micro_free = true, recompute_free = true;
  index_t nodes = 0;       // of a job; 0 = any number
  index_t most_nodes = 0;  // 0 = all
  /// Of a rank's memory that tensors may take: the rest is for what has no formula.
  double memory_part = 0.92;
  index_t most_priced = 2000;  // of one set of nodes
  index_t most_dealt = 40;     // of one set of several classes: each is planned as a job is
  std::size_t kept = 10;       // best plans of one set of nodes
};

struct FoundPlan {
  std::vector<JobPart> parts;
  Plan plan;
  StepForecast forecast;
  index_t needed_bytes = 0, room_bytes = 0;  // of the rank that has least left; room 0 = unknown
  /// Where the plan's order of axes is not the usual one: a step in that one.
  std::optional<double> usual_seconds;
  [[nodiscard]] double seconds() const { return forecast.seconds(); }
};

/// What was left out, and how often.
struct LeftOut {
  std::string why;
  index_t count = 0;
  std::string nearest;  // of those, the one that lacked least
};

struct NodesSearched {
  std::vector<JobPart> parts;
  std::vector<FoundPlan> plans;  // best first; none where nothing fits
  std::vector<LeftOut> left_out;
  index_t candidates = 0, priced = 0;  // each with all orders of axes
  bool complete = true;                // no candidate that was not priced can be better
};

/// For one set of nodes.
[[nodiscard]] NodesSearched search_nodes(const SearchRequest& request,
                                         const std::vector<JobPart>& parts, ClusterRates& rates);

inline constexpr std::size_t kMostMixedClasses = 6;
/// Sets of nodes that are worth a look: of one class any number on a ladder (1, 2, 3, 4, 6, 8, 12,
/// ... and all), of several classes (of the first kMostMixedClasses) all of them or half of each.
/// No more of a class than its partition gives to one job.
[[nodiscard]] std::vector<std::vector<JobPart>> node_sets(const SearchRequest& request,
                                                          const Cluster& cluster);

}  // namespace t3d
