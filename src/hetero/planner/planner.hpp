// The planner: which ranks sit where, and which integer widths, sequences and storage they get, so
// that a step is predicted to end earliest. A pure function of the request and the gathered speeds:
// every rank runs it and gets the same plan.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "hetero/planner/build_plan.hpp"
#include "hetero/planner/step_seconds.hpp"

namespace t3d {

struct PlanRequest {
  PlanRecipe recipe;
  // What the user has decided.
  std::optional<index_t> replicas;
  std::vector<Cuboid> cuboids;  // one for all replicas, or one for each; none = free
  std::vector<int> place;       // as Plan::place; empty = free
  /// Cuts of features of every replica: what is given of hidden, groups, ffn and vocab; the rest is
  /// not read.
  ReplicaShape cut;
  /// Sequences that are dealt at once; recipe.sequences is a multiple of it.
  index_t unit = 1;
  /// Ranks whose speeds differ by no more than this fraction are equal: they keep the even plan.
  double tolerance = 0.05;
  /// Features may be cut unevenly too, where sequences do not level the ranks out.
  bool feature_widths = true;
  /// A plan of few ranks is improved by exchanges of places and widths: some ten milliseconds.
  bool exchanges = true;
};

struct PlanChoice {
  Plan plan;
  StepSeconds predicted;
  double bound = 0;              // seconds that no plan of this work can beat (work_bound)
  double gap = 0;                // predicted.step / bound - 1
  std::vector<std::string> why;  // one line for each plan that was priced, the chosen one first
};

/// For given replicas and cuboids (both are set in the request). Ranks of speed 0 stay idle, and
/// the slowest ones beyond what the shape needs. Equal ranks get the plan that build_plan() makes
/// of even widths, with the first ranks in order. Throws Error(config) where fewer ranks than
/// needed have any speed, Error(unavailable) with the arithmetic where the ranks' memory is too
/// small.
[[nodiscard]] PlanChoice plan_shape(const PlanRequest& request, const Speeds& speeds);

/// What of replicas and cuboid the request leaves open is chosen too: all meshes of one cuboid that
/// the ranks can fill are estimated, the best few are planned and priced. Slow ranks stay idle
/// where that is faster. Of meshes that are equally fast the simplest. Throws as plan_shape()
/// where no mesh is possible.
[[nodiscard]] PlanChoice plan_job(const PlanRequest& request, const Speeds& speeds);

}  // namespace t3d
