// Predictors of a rank's speed beside each other, on synthetic speeds
// (tests/support/speed_series.hpp): root mean square error relative to that of "the last speed",
// over eight series, spikes not scored; and the cost per step on this machine. `regime` is what the
// trainer goes by, the others are baselines.
//
//   build/cpu/bench/t3d_bench_predictors
#include <fmt/format.h>

#include <chrono>

#include "baselines/speed_predictor.hpp"
#include "support/prediction_error.hpp"

using namespace t3d;

namespace {

double microseconds_per_step(PredictorKind kind) {
  using Clock = std::chrono::steady_clock;
  const auto series = test::speed_series(test::kScoredSteps, 0, true);
  const auto predictor = make_predictor(kind, 2);
  const auto start = Clock::now();
  double sum = 0;
  for (const test::SpeedSample& sample : series) {
    predictor->observe(sample.speed, sample.signals);
    sum += predictor->predict();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return sum > 0 ? 1e6 * seconds / double(series.size()) : 0;
}

}  // namespace

int main() {
  fmt::print("{:<8} {:>15} {:>13} {:>10}\n", "", "uninformative", "informative", "us/step");
  for (const PredictorKind kind :
       {PredictorKind::last, PredictorKind::median, PredictorKind::regime, PredictorKind::kalman,
        PredictorKind::arx, PredictorKind::narx, PredictorKind::automatic}) {
    std::array<double, 2> relative{};
    for (const bool informative : {false, true})
      relative[informative ? 1 : 0] = test::prediction_error(kind, informative) /
                                      test::prediction_error(PredictorKind::last, informative);
    fmt::print("{:<8} {:>15.3f} {:>13.3f} {:>10.2f}\n", word_of(kind), relative[0], relative[1],
               microseconds_per_step(kind));
  }
  for (const bool informative : {false, true})
    fmt::print("last, {}: {:.4f} of the speed\n", informative ? "informative" : "uninformative",
               test::prediction_error(PredictorKind::last, informative));
}
