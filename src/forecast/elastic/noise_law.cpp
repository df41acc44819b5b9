#include "forecast/elastic/noise_law.hpp"

#include <algorithm>
#include <cmath>

namespace t3d {
namespace {

/// Sums over neighbouring steps.
struct Window {
  double steps = 0, count = 0, signal = 0, noise = 0;
  void add(const NoiseStep& one) {
    steps += one.step;
    count += 1;
    signal += one.signal;
    noise += one.noise;
  }
  void add(const Window& other) {
    steps += other.steps;
    count += other.count;
    signal += other.signal;
    noise += other.noise;
  }
  [[nodiscard]] bool shows() const { return signal > 0 && noise > 0; }
  [[nodiscard]] double log_step() const { return std::log(steps / count); }
  [[nodiscard]] double log_scale() const { return std::log(noise / signal); }
};

/// Longer ones later, as the scale changes with the logarithm of the step. One that shows nothing
/// goes on until it does: leaving it out would leave out the noisiest.
std::vector<Window> windows_of(const std::vector<NoiseStep>& steps) {
  constexpr double kLeast = 20, kGrowth = 0.3;  // steps; of the step where it begins
  std::vector<Window> windows;
  Window open;
  double begin = 0;
  for (const NoiseStep& one : steps) {
    if (open.count == 0) begin = one.step;
    open.add(one);
    const bool long_enough = open.count >= kLeast && one.step - begin >= kGrowth * begin;
    if (!long_enough || !open.shows()) continue;
    windows.push_back(open);
    open = {};
  }
  if (open.count == 0) return windows;
  if (windows.empty()) return {open};
  windows.back().add(open);
  if (!windows.back().shows()) windows.pop_back();
  return windows;
}

}  // namespace

double NoiseLaw::at(double step) const { return scale * std::pow(std::max(step, 1.0), exponent); }

bool fit_noise(std::vector<NoiseStep> steps, NoiseLaw& law) {
  std::sort(steps.begin(), steps.end(),
            [](const NoiseStep& a, const NoiseStep& b) { return a.step < b.step; });
  Window all;
  double sequences = 0;
  for (const NoiseStep& one : steps) {
    all.add(one);
    sequences += one.sequences;
  }
  const std::vector<Window> windows = windows_of(steps);
  if (windows.empty() || !windows.front().shows() || !all.shows()) return false;
  double weight = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (const Window& one : windows) {
    weight += one.count;
    x += one.count * one.log_step();
    y += one.count * one.log_scale();
  }
  x /= weight, y /= weight;
  for (const Window& one : windows) {
    xx += one.count * (one.log_step() - x) * (one.log_step() - x);
    xy += one.count * (one.log_step() - x) * (one.log_scale() - y);
  }
  // Extrapolated to a whole run: what a short one pretends is kept within reason.
  constexpr double kMostExponent = 2;
  law.exponent = xx > 0 ? std::clamp(xy / xx, -kMostExponent, kMostExponent) : 0;
  law.scale = std::exp(y - law.exponent * x);
  law.sequences = sequences / all.count;
  law.first = steps.front().step;
  law.last = steps.back().step;
  law.steps = std::ssize(steps);
  double squares = 0;
  for (const Window& one : windows) {
    const double off = one.log_scale() - y - law.exponent * (one.log_step() - x);
    squares += one.count * off * off;
  }
  law.spread = std::exp(std::sqrt(squares / weight));
  return true;
}

std::vector<Stretch> stretches_of(const NoiseLaw& law, double steps, double batch, int count) {
  constexpr int kParts = 64;  // of a stretch, each with one noise scale
  std::vector<Stretch> stretches(static_cast<std::size_t>(count));
  const double part = steps / count / kParts;
  double at = 0;  // steps of the law's run
  for (Stretch& stretch : stretches) {
    double noise = 0;
    for (int n = 0; n < kParts; ++n) {
      const auto progress = [&](double step, double own) { return 1 / (1 + law.at(step) / own); };
      // Half of the way tells the scale in the middle.
      const double rate = progress(at, batch) / progress(at, law.sequences);
      const double middle = at + 0.5 * part * rate;
      const double done = part * progress(middle, batch);
      stretch.progress += done;
      noise += done * law.at(middle);
      at += done / progress(middle, law.sequences);
    }
    stretch.steps = part * kParts;
    stretch.noise = noise / stretch.progress;
  }
  return stretches;
}

}  // namespace t3d
