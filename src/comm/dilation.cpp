#include "comm/dilation.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kSlice{200};
constexpr double kComputedAtOnce = 1e-3;  // seconds

}  // namespace

void Dilation::set_factor(double factor) {
  if (!on()) resume();
  factor_ = factor;
}

bool Dilation::due() const {
  return on() && thread_cpu_seconds() - computing_since_ > kComputedAtOnce;
}

// The deadlines are absolute: a slice that overslept shortens the next one.
void Dilation::pay(const std::function<void()>& progress) {
  const double computed = thread_cpu_seconds() - computing_since_;
  if (computed <= 0) return;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>((factor_ - 1) * computed));
  for (auto until = start; until < end;) {
    until = std::min(end, std::max(until + kSlice, Clock::now()));
    std::this_thread::sleep_until(until);
    progress();
  }
  paused_seconds() += std::chrono::duration<double>(Clock::now() - start).count();
  resume();
}

}  // namespace t3d
