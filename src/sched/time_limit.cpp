#include "sched/time_limit.hpp"

#include <algorithm>

namespace t3d {
namespace {

constexpr std::size_t kSteps = 256, kSaves = 4;

void keep(std::vector<double>& values, std::size_t& next, std::size_t most, double value) {
  if (values.size() < most) {
    values.push_back(value);
    return;
  }
  values[next] = value;
  next = (next + 1) % most;
}

}  // namespace

void Pace::add_step(double seconds) { keep(steps_, next_step_, kSteps, seconds); }
void Pace::add_save(double seconds) { keep(saves_, next_save_, kSaves, seconds); }

double Pace::long_step_seconds() const {
  if (steps_.empty()) return 0;
  std::vector<double> steps = steps_;
  const auto at = steps.begin() + static_cast<std::ptrdiff_t>((99 * (steps.size() - 1) + 50) / 100);
  std::nth_element(steps.begin(), at, steps.end());
  return *at;
}

void Pace::add_deaf(double seconds) { deaf_ = std::max(deaf_, seconds); }

double Pace::unheard_seconds() const {
  const double step = long_step_seconds();
  return step + std::max(step, deaf_);
}

double Pace::save_seconds() const {
  return saves_.empty() ? 0 : *std::max_element(saves_.begin(), saves_.end());
}

double Pace::reserve_seconds(double life_seconds) const {
  constexpr double kSlack = 5, kUnknownSave = 30, kPart = 0.05;
  const double most = kPart * life_seconds;
  const double save = saves_.empty() ? std::min(kUnknownSave, most) : 1.5 * save_seconds();
  return unheard_seconds() + (saving_ ? 2 : 1) * save + std::min(kSlack, most);
}

}  // namespace t3d
