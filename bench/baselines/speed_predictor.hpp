// SpeedPredictor: what a rank's speed will be in the next step, from its own past and, where there
// are any, signals of its host. Baselines: the trainer goes by measured times alone
// (docs/decisions/012). The same inputs give the same predictions.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/words.hpp"

namespace t3d {

enum class PredictorKind { automatic, last, median, regime, kalman, arx, narx };
template <>
struct Words<PredictorKind> {
  static constexpr std::array<std::string_view, 7> all{"auto",   "last", "median", "regime",
                                                       "kalman", "arx",  "narx"};
};

class SpeedPredictor {
 public:
  explicit SpeedPredictor(std::size_t signals) : signals_(signals, 0.0) {}
  virtual ~SpeedPredictor() = default;
  /// One step is over: its speed (work per second, > 0; relative, any unit), and the signals that
  /// are known for the step to come (available CPU in 0..1, available memory in 0..1, ...; always
  /// as many as at construction). Values that are not finite are taken as "as before".
  void observe(double speed, std::span<const double> signals);
  /// Speed of the next step; 0 before the first observation.
  [[nodiscard]] virtual double predict() const = 0;

 protected:
  /// A speed > 0 and signals, all finite.
  virtual void learn(double speed, std::span<const double> signals) = 0;

 private:
  double speed_ = 0;             // the last valid one
  std::vector<double> signals_;  // likewise
};

/// `signals`: how many come with every observation. automatic: the selector, which keeps a
/// discounted Huber error of each kind and follows the best, ties to the simplest. regime: what the
/// trainer's `model` controller reckons with. Seeds (narx) are fixed.
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_predictor(PredictorKind kind,
                                                             std::size_t signals);

// One file each; for make_predictor.
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_median(std::size_t signals, std::size_t window);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_regime(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_kalman(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_arx(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_narx(std::size_t signals);
[[nodiscard]] std::unique_ptr<SpeedPredictor> make_selector(std::size_t signals);

}  // namespace t3d
