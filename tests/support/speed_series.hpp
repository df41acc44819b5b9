// Speeds of a shared node as they might be measured step by step, for tests and benchmarks of
// predictors: seeded, synthetic.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/random.hpp"

namespace t3d::test {

struct SpeedSample {
  double speed = 0;                 // units per second, with noise
  bool spike = false;               // a single slow step
  std::array<double, 2> signals{};  // available CPU and memory of this step, in 0..1
};

/// An AR(1) process around `center` within [0, 1].
class Wander {
 public:
  Wander(const RandomKey& key, double center, double keep, double spread)
      : key_(key), center_(center), keep_(keep), spread_(spread), value_(center) {}
  double next() {
    const double push = spread_ * std::sqrt(1 - keep_ * keep_) * random_normal(key_, at_++);
    value_ = std::clamp(center_ + keep_ * (value_ - center_) + push, 0.0, 1.0);
    return value_;
  }

 private:
  RandomKey key_;
  double center_, keep_, spread_, value_;
  index_t at_ = 0;
};

/// Speed = regime x f(available CPU) x g(available memory), f mildly bent, g with a knee; the
/// regime changes every few hundred steps; 2 % noise; 1 % spikes, 1.5 to 2.5 times slower.
/// `informative`: the signals are those that the speed depends on, else others of the same kind.
[[nodiscard]] inline std::vector<SpeedSample> speed_series(index_t steps, std::uint64_t seed,
                                                           bool informative) {
  constexpr double kKnee = 0.25;
  const std::uint64_t shown = informative ? 0 : 10;
  Wander cpu({seed, 1}, 0.65, 0.98, 0.17), memory({seed, 2}, 0.5, 0.98, 0.15);
  Wander cpu_shown({seed, 1 + shown}, 0.65, 0.98, 0.17);
  Wander memory_shown({seed, 2 + shown}, 0.5, 0.98, 0.15);
  double regime = 1;
  std::vector<SpeedSample> series;
  for (index_t step = 0; step < steps; ++step) {
    const auto uniform = [&](index_t which) {
      return double(random_uniform({seed, 3}, 4 * step + which));
    };
    if (uniform(0) < 1.0 / 300) regime = 0.6 + 0.4 * uniform(1);
    const double work = std::pow(cpu.next(), 0.8);
    const double pressure = std::max(0.0, kKnee - memory.next());
    SpeedSample sample;
    sample.signals = {cpu_shown.next(), memory_shown.next()};
    sample.spike = uniform(2) < 0.01;
    const double slower = sample.spike ? 1.3 + 0.5 * uniform(3) : 1;
    sample.speed = 100 * regime * (0.3 + 0.7 * work) * (1 - 1.5 * pressure) / slower *
                   (1 + 0.02 * random_normal({seed, 4}, step));
    series.push_back(sample);
  }
  return series;
}

}  // namespace t3d::test
