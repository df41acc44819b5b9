// How long a step of a plan takes on nodes of a cluster that was measured before: operators by
// kind, messages by group and by whether they leave the node. Where predict_step() asks the ranks
// that are there (hetero/planner), this asks cluster.toml. Pure arithmetic.
//
// Ranks of a slab meet at every product, slabs at every gather of weights, replicas at the end: a
// step lasts as long as the slowest slab of the slowest replica. Where they meet often they wait
// for whoever takes longest this time (forecast/cluster/meeting.hpp); between slabs that averages
// out. Which messages products hide says hetero/cost/exposed_messages.hpp.
#pragma once
#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "forecast/cluster/level_estimator.hpp"
#include "forecast/cluster/meeting.hpp"
#include "forecast/cluster/operator_estimator.hpp"
#include "forecast/job_nodes.hpp"
#include "forecast/operator_calls.hpp"
#include "hetero/cost/exposed_messages.hpp"

namespace t3d {

/// What the steps of a run say about the terms: each is multiplied by its factor. Of a step the
/// part `waiting` is in no term.
struct ForecastFactors {
  double compute = 1, inside = 1, between = 1, host = 1, waiting = 0;
  friend bool operator==(const ForecastFactors&, const ForecastFactors&) = default;
};

struct ForecastTerms {
  std::array<double, kOperatorKinds> operators{};  // seconds, of the slowest path
  double host = 0;                                 // starting operators
  double meeting = 0;                              // waiting for the others at products
  static constexpr std::size_t kGroups = static_cast<std::size_t>(Group::count_);
  using GroupSeconds = std::array<double, kGroups>;
  GroupSeconds inside{}, between{};  // messages, also those that products hide
  MessageCover cover;

  [[nodiscard]] double compute() const;
  /// Without what updates weights: messages are hidden behind this.
  [[nodiscard]] double products() const;
  /// Of messages in a group, the part that is waited for.
  [[nodiscard]] double exposed(Group group) const;
  // Messages that are waited for.
  [[nodiscard]] double messages_inside() const;
  [[nodiscard]] double messages_between() const;
  [[nodiscard]] double sum() const { return sum({}); }
  [[nodiscard]] double sum(const ForecastFactors& factors) const;

 private:
  struct Exposed {
    double inside_replica = 1, over_replicas = 1;
    [[nodiscard]] double of(Group group) const;
  };
  [[nodiscard]] Exposed exposed_parts(const ForecastFactors& factors) const;
  [[nodiscard]] double messages_of(GroupSeconds ForecastTerms::*which,
                                   const ForecastFactors& factors) const;
};

struct StepForecast {
  ForecastTerms terms;
  double imbalance = 1;  // computing of the slowest replica over the mean of all
  [[nodiscard]] double seconds() const { return terms.sum(); }
};

/// The tables of a cluster, ready to be asked. Not for several threads at once.
class ClusterRates {
 public:
  /// `cluster` must outlive it.
  explicit ClusterRates(const Cluster& cluster);
  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  /// Of one call; infinity where the class has no table for it.
  [[nodiscard]] double seconds(std::size_t node_class, ComputeType format,
                               const OperatorCall& call);
  [[nodiscard]] bool knows(std::size_t node_class, OperatorKind kind, ComputeType format) const {
    return operators_[node_class].estimator().knows(kind, format);
  }
  [[nodiscard]] double launch_seconds(std::size_t node_class) const {
    return operators_[node_class].estimator().launch_seconds();
  }
  [[nodiscard]] Jitter jitter(std::size_t node_class) const {
    const NodeClass& own = cluster_.classes[node_class];
    return {own.jitter, own.jitter_exponent};
  }
  [[nodiscard]] const LevelEstimator& level(std::size_t at) const { return levels_[at]; }

 private:
  const Cluster& cluster_;
  std::vector<CachedEstimator> operators_;  // by class
  std::vector<LevelEstimator> levels_;
};

/// Infinity where a class lacks a table. Error(config) where the plan has more ranks than the
/// nodes.
[[nodiscard]] StepForecast forecast_step(const Plan& plan, const JobNodes& nodes,
                                         ClusterRates& rates);

}  // namespace t3d
