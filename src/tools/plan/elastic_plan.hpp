// plan --elastic: sizes over the run by the noise scale, beside the best fixed size.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "forecast/elastic/elastic_schedule.hpp"
#include "tools/command_line.hpp"
#include "tools/plan/job_options.hpp"

namespace t3d {

/// Nodes with their best plan for one batch; one for each ElasticSize.
struct ElasticOption {
  index_t batch = 0;
  FoundPlan found;
  SimulatedJob job;  // with the input's batch on the same nodes
};

struct ElasticPlan {
  NoiseLaw noise;
  std::string noise_source;  // whence it is known, for people
  std::string batch_rule;    // why the batch grows, or does not
  std::vector<ElasticOption> options;
  std::vector<ElasticSize> sizes;  // the same
  /// The best within the limits; the best of one size with any batch.
  ElasticSchedule schedule, fixed;
  /// What plan would choose without --elastic: one size, the input's batch.
  ElasticSchedule planned;
  ElasticOption planned_option;
  std::string currency;
};

/// Plans of all sets of nodes for a batch.
using SearchBatch = std::function<std::vector<NodesSearched>(index_t batch)>;

/// Of all sets of one class. The limits are those of the wish; where it has none, the other one of
/// hours and cost than `wish.objective` names is that of the chosen option. Error(config) where the
/// noise scale is not known, with how to get it; Error(usage) where --most-batch is below the
/// batch.
[[nodiscard]] ElasticPlan elastic_plan(const Config& config, const PlanCommand& command,
                                       const JobWish& wish, const std::vector<JobOption>& options,
                                       std::size_t chosen, const SearchBatch& search);

/// The schedule, and what it saves.
[[nodiscard]] std::string elastic_text(const ElasticPlan& plan, const JobWish& wish,
                                       const Cluster& cluster);
[[nodiscard]] std::string elastic_json(const ElasticPlan& plan, const JobWish& wish,
                                       const Cluster& cluster);

/// A phase of whole steps, as a run takes it.
struct PhaseSteps {
  std::size_t size = 0;
  index_t first = 0, last = 0;  // steps of the run: first + 1 .. last
};
[[nodiscard]] std::vector<PhaseSteps> whole_steps(const ElasticPlan& plan);

}  // namespace t3d
