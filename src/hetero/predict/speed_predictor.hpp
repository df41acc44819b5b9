// SpeedPredictor: what a rank's speed will be in the next step, from its own past and, where there
// are any, signals of its host. Every rank predicts itself; the predictions are gathered. Pure
// arithmetic on what it is given: the same inputs give the same predictions.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "core/words.hpp"

namespace t3d {

enum class PredictorKind { automatic, last, median, kalman, arx, narx };
template <>
struct Words<PredictorKind> {
  static constexpr std::array<std::string_view, 6> all{"auto",   "last", "median",
                                                       "kalman", "arx",  "narx"};
};

class SpeedPredictor {
 public:
  virtual ~SpeedPredictor() = default;
  /// One step is over: its speed (work per second, > 0; relative, any unit), and the signals that
  /// are known for the step to come (available CPU in 0..1, available memory in 0..1, ...; always
  /// as many as at construction). Values that are not finite are taken as "as before".
  virtual void observe(double speed, std::span<const double> signals) = 0;
  /// Speed of the next step; 0 before the first observation.
  [[nodiscard]] virtual double predict() const = 0;
  [[nodiscard]] virtual PredictorKind kind() const = 0;
};

/// `signals`: how many come with every observation. automatic: the selector, which keeps a
/// discounted Huber error of each kind and follows the best, ties to the simplest. Seeds (narx) are
/// fixed: predictions are reproducible.
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_predictor(PredictorKind kind,
                                                             std::size_t signals);

}  // namespace t3d
