// What `transformer3d plan` says and writes.
#pragma once
#include <string>
#include <vector>

#include "app/commands/plan/job_options.hpp"

namespace t3d {

struct PlanReport {
  const Cluster& cluster;
  const std::vector<NodesSearched>& searched;
  const std::vector<JobOption>& options;
  std::size_t chosen = 0;
  JobWish wish;
  index_t context = 0;
  double search_seconds = 0;
};

/// The options, the chosen plan's time by term, what was left out and why, and what a tenth more or
/// less of bandwidth, price and losses would change.
[[nodiscard]] std::string plan_text(const PlanReport& report, std::size_t top);
[[nodiscard]] std::string plan_json(const PlanReport& report);
[[nodiscard]] std::string plan_csv(const PlanReport& report);
/// Hours and cost of all options, the front as a line.
[[nodiscard]] std::string plan_plot(const PlanReport& report);

}  // namespace t3d
