// What says beforehand how long the steps of a run should take. The run knows no cluster files: who
// starts it brings a predictor, or none.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/plan.hpp"

namespace t3d {

class StepPredictor {
 public:
  virtual ~StepPredictor() = default;
  /// Of a step under `plan`.
  [[nodiscard]] virtual double seconds(const Plan& plan) = 0;
  /// A step under the plan that was asked for last took so long.
  virtual void measured(double seconds) = 0;
  /// Of a step under that plan, once the ranks' times are known: for how much of its `seconds` the
  /// rank computed that computed longest. They are not known of every step.
  virtual void computed(double own, double seconds) = 0;
  /// For the end: predicted and measured seconds, and terms that are off by a tenth or more.
  [[nodiscard]] virtual std::vector<std::string> remarks() const = 0;
  /// What the steps so far took over what was predicted, for a file of this name in the folder of
  /// `run`: with `earlier`, what the file has of the run's lives before (empty = none), where both
  /// are about the same. Empty where nobody can tell. Error(config) where `earlier` is no such
  /// text; `source` names it in messages.
  [[nodiscard]] virtual std::string factors_text(const std::string& run, const std::string& earlier,
                                                 const std::string& source) const = 0;
};
inline constexpr const char* kStepFactorsFile = "step_factors.json";

/// `file`: hetero.cluster. `nodes`, `devices`: by world rank. Error where there can be none.
using MakeStepPredictor = std::function<std::unique_ptr<StepPredictor>(
    const std::string& file, const std::vector<std::string>& nodes,
    const std::vector<std::string>& devices)>;

}  // namespace t3d
