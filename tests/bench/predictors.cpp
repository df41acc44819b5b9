// Predictors of a rank's speed (bench/baselines/speed_predictor.hpp): what each does, and their
// ranking on synthetic series.
#include <limits>

#include "support/catch.hpp"
#include "support/prediction_error.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

constexpr std::array kKinds{PredictorKind::last,     PredictorKind::median, PredictorKind::regime,
                            PredictorKind::kalman,   PredictorKind::arx,    PredictorKind::narx,
                            PredictorKind::automatic};
const double kNan = std::numeric_limits<double>::quiet_NaN();

/// Root mean square of predicted / true - 1 in the second half, where speed = law(signal) and the
/// signal is drawn anew in every step.
template <class Law>
double error_of_law(PredictorKind kind, const Law& law) {
  const auto predictor = make_predictor(kind, 1);
  const auto signal = [](index_t step) { return double(random_uniform({5, 5}, step)); };
  double squares = 0;
  constexpr index_t kSteps = 3000;
  for (index_t step = 0; step < kSteps; ++step) {
    const double next = signal(step + 1), speed = law(next);
    predictor->observe(law(signal(step)), std::array{next});
    const double error = predictor->predict() / speed - 1;
    if (step >= kSteps / 2) squares += error * error;
  }
  return std::sqrt(squares / double(kSteps / 2));
}

}  // namespace

TEST_CASE("before the first step there is no prediction, then a constant speed is predicted") {
  for (const PredictorKind kind : kKinds)
    for (const double speed : {1e-3, 7.0, 3e9}) {
      INFO(kind << ", speed " << speed);
      const auto predictor = make_predictor(kind, 1);
      CHECK(predictor->predict() == 0);
      for (int step = 0; step < 300; ++step) {
        predictor->observe(speed, std::array{0.5});
        CHECK(predictor->predict() == Approx(speed).epsilon(0.03));
      }
      CHECK(predictor->predict() == Approx(speed).epsilon(0.002));
    }
}

TEST_CASE("what is not a number is taken as before") {
  for (const PredictorKind kind : kKinds) {
    INFO(kind);
    const auto clean = make_predictor(kind, 2), dirty = make_predictor(kind, 2);
    dirty->observe(kNan, std::array{0.4, 0.5});
    dirty->observe(-1, std::array{0.4, 0.5});
    CHECK(dirty->predict() == 0);
    for (int step = 0; step < 150; ++step) {
      const double speed = 10 + step % 3;
      clean->observe(speed, std::array{0.4, 0.5});
      dirty->observe(speed, std::array{kNan, 0.5});
      clean->observe(speed, std::array{0.4, 0.5});
      dirty->observe(step % 2 == 0 ? 0 : std::numeric_limits<double>::infinity(),
                     std::array{0.4, kNan});
    }
    CHECK(std::isfinite(dirty->predict()));
    CHECK(dirty->predict() == clean->predict());
  }
}

TEST_CASE("last and median of five") {
  const auto last = make_predictor(PredictorKind::last, 0);
  const auto median = make_predictor(PredictorKind::median, 0);
  for (const double speed : {9.0, 1.0, 2.0, 8.0, 3.0, 4.0}) {
    last->observe(speed, {});
    median->observe(speed, {});
  }
  CHECK(last->predict() == 4);
  CHECK(median->predict() == 3);  // of 1 2 8 3 4
}

TEST_CASE("the filter leaves out a spike and follows a jump at its second step") {
  const auto kalman = make_predictor(PredictorKind::kalman, 0);
  const auto run = [&](int steps, double speed) {
    for (int step = 0; step < steps; ++step)
      kalman->observe(speed * (1 + 0.02 * random_normal({1, 1}, step)), {});
    return kalman->predict();
  };
  CHECK(run(100, 10) == Approx(10).epsilon(0.03));
  CHECK(run(1, 5) == Approx(10).epsilon(0.03));
  CHECK(run(1, 10) == Approx(10).epsilon(0.03));
  run(1, 5);
  CHECK(run(1, 5) == Approx(5).epsilon(0.06));
  CHECK(run(30, 5) == Approx(5).epsilon(0.03));
  // A spike up, then one down, are two spikes.
  run(1, 10);
  CHECK(run(1, 2) == Approx(5).epsilon(0.03));
}

TEST_CASE("the linear predictor learns a linear law of its signal, the network a bent one") {
  const auto line = [](double signal) { return 100 * (0.4 + 0.6 * signal); };
  CHECK(error_of_law(PredictorKind::last, line) > 0.2);
  CHECK(error_of_law(PredictorKind::arx, line) < 0.03);
  CHECK(error_of_law(PredictorKind::automatic, line) < 0.03);
  const auto bent = [](double signal) { return 100 * (1 - 0.7 * std::abs(2 * signal - 1)); };
  const double network = error_of_law(PredictorKind::narx, bent);
  CHECK(network < 0.5 * error_of_law(PredictorKind::arx, bent));
  CHECK(error_of_law(PredictorKind::automatic, bent) == Approx(network).epsilon(0.05));
}

TEST_CASE("inputs that never change do no harm in a long run") {
  const auto arx = make_predictor(PredictorKind::arx, 2);
  for (index_t step = 0; step < 50000; ++step)
    arx->observe(10 * (1 + 0.02 * random_normal({2, 1}, step)), std::array{1.0, 0.0});
  CHECK(arx->predict() == Approx(10).epsilon(0.05));
  for (index_t step = 0; step < 500; ++step) {
    const double signal = double(random_uniform({2, 2}, step));
    arx->observe(10 * (1 + 0.02 * random_normal({2, 3}, step)), std::array{signal, 0.0});
    CHECK(arx->predict() == Approx(10).epsilon(0.3));
  }
}

TEST_CASE("the ranking with signals that say nothing and with those that do, and the selector") {
  for (const std::uint64_t seeds : {0U, 100U}) {
    INFO("seeds from " << seeds);
    std::array<double, kKinds.size()> plain{}, informed{};
    for (std::size_t n = 0; n < kKinds.size(); ++n) {
      plain[n] = prediction_error(kKinds[n], false, seeds);
      informed[n] = prediction_error(kKinds[n], true, seeds);
    }
    const auto [last, median, regime, kalman, arx, narx, automatic] = plain;
    CHECK(kalman < arx);
    CHECK(arx < narx);
    CHECK(narx < median);
    CHECK(median < 1.03 * last);
    CHECK(kalman < 0.87 * last);
    CHECK(automatic <= 1.03 * kalman);
    CHECK(informed[4] < 0.75 * informed[0]);
    CHECK(informed[4] < informed[5]);
    CHECK(informed[5] < informed[3]);
    CHECK(informed[3] == kalman);
    CHECK(informed[6] <= 1.03 * informed[4]);
  }
}
