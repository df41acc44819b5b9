// A shape that a job might have, before it is a plan, and what it takes at least. Internal to
// hetero/forecast.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "forecast/plan_search.hpp"

namespace t3d {

struct JobCandidate {
  index_t replicas = 1;
  Cuboid cuboid{1, 1, 1};
  index_t micro = 0;  // as PlanRecipe's
  Recompute recompute = Recompute::none;
  double bound = 0;      // seconds
  bool ordered = false;  // the bound is of an order of axes, not of all at once
  /// "2 x (4 x 2 x 1), micro-batch 8, recompute"
  [[nodiscard]] std::string text() const;
};

using LeftOutMap = std::map<std::string, LeftOut>;

/// All that the nodes' ranks can form; those with parts that would be empty are counted in
/// `left_out`.
[[nodiscard]] std::vector<JobCandidate> candidates_of(const SearchRequest& request,
                                                      const JobNodes& nodes, LeftOutMap& left_out);

}  // namespace t3d
