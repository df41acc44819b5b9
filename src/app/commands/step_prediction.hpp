// hetero.cluster: what the steps of a run should take by cluster.toml, beside what they take, and
// which terms are off.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/commands/step_factors.hpp"
#include "hetero/forecast/factor_filter.hpp"

namespace t3d {

class StepPrediction {
 public:
  /// Predicts nothing.
  StepPrediction();
  /// `nodes`, `devices`: by world rank. A rank's class is the one whose node_list has its node,
  /// else the only one with its device. Error(config) where a rank has no class, or where a node's
  /// ranks are not as many as its class has; errors of load_cluster().
  StepPrediction(const std::string& file, const std::vector<std::string>& nodes,
                 const std::vector<std::string>& devices);
  ~StepPrediction();
  StepPrediction(StepPrediction&&) noexcept;
  StepPrediction& operator=(StepPrediction&&) noexcept;

  [[nodiscard]] bool there() const { return known_ != nullptr; }
  /// Of a step under `plan`.
  [[nodiscard]] double seconds(const Plan& plan);
  /// A step under the plan that was asked for last took so long.
  void measured(double seconds);
  /// Of a step under that plan, once the ranks' times are known: for how much of its `seconds` the
  /// rank computed that computed longest. They are not known of every step.
  void computed(double own, double seconds);
  /// Of the steps so far, over the tables of the file; nothing where there were too few, or the
  /// nodes are of several classes, or factors do not explain them: what is slow there nobody can
  /// tell.
  [[nodiscard]] std::optional<StepFactors> factors() const;
  /// For the end: predicted and measured seconds, and terms that are off by a tenth or more.
  [[nodiscard]] std::vector<std::string> remarks() const;

 private:
  struct Known;
  /// The factors that would be used give back the run's own steps.
  [[nodiscard]] bool explained() const;
  std::unique_ptr<Known> known_;
};

}  // namespace t3d
