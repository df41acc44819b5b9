// hetero.cluster: what the steps of a run should take by cluster.toml, beside what they take, and
// which terms are off.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "forecast/factor_filter.hpp"
#include "run/step_predictor.hpp"
#include "tools/step_factors.hpp"

namespace t3d {

class StepPrediction final : public StepPredictor {
 public:
  /// A rank's class is the one whose node_list has its node, else the only one with its device.
  /// Error(config) where a rank has no class, or where a node's ranks are not as many as its class
  /// has; errors of load_cluster().
  StepPrediction(const std::string& file, const std::vector<std::string>& nodes,
                 const std::vector<std::string>& devices);
  ~StepPrediction() override;

  [[nodiscard]] double seconds(const Plan& plan) override;
  void measured(double seconds) override;
  void computed(double own, double seconds) override;
  [[nodiscard]] std::vector<std::string> remarks() const override;
  [[nodiscard]] std::string factors_text(const std::string& run, const std::string& earlier,
                                         const std::string& source) const override;
  /// Of the steps so far, over the tables of the file; nothing where there were too few, or the
  /// nodes are of several classes, or factors do not explain them: what is slow there nobody can
  /// tell.
  [[nodiscard]] std::optional<StepFactors> factors() const;

 private:
  struct Known;
  /// The factors that would be used give back the run's own steps.
  [[nodiscard]] bool explained() const;
  std::unique_ptr<Known> known_;
};

}  // namespace t3d
