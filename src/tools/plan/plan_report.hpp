// What `transformer3d plan` says and writes.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/plan/job_options.hpp"

namespace t3d {

struct PlanReport {
  const Cluster& cluster;
  const std::vector<NodesSearched>& searched;
  const std::vector<JobOption>& options;
  std::optional<std::size_t> chosen;  // nothing where no option keeps to the wish
  JobWish wish;
  index_t context = 0;
  double search_seconds = 0;
  std::vector<std::string> notes;    // what a reader should know about the figures
  std::vector<std::string> basis{};  // what was guessed rather than measured; said first

  [[nodiscard]] double tokens_per_second(const FoundPlan& found) const;
};

/// Terms of a forecast that count, largest first.
[[nodiscard]] std::vector<std::pair<std::string, double>> terms_of(const ForecastTerms& terms);

/// What was guessed, a line each, and an empty line; nothing where all was measured.
[[nodiscard]] std::string basis_text(const std::vector<std::string>& basis);
/// The options, the chosen plan's time by term, what was left out and why, and what a tenth more or
/// less of bandwidth, price and losses would change. One is chosen.
[[nodiscard]] std::string plan_text(const PlanReport& report, std::size_t top);
/// The same for scripts; also where nothing is chosen: what is nearest, and what was left out.
[[nodiscard]] std::string plan_json(const PlanReport& report);
[[nodiscard]] std::string plan_csv(const PlanReport& report);
/// Hours and cost of all options, the front as a line.
[[nodiscard]] std::string plan_plot(const PlanReport& report);

}  // namespace t3d
