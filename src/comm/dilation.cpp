#include "comm/dilation.hpp"

#include <algorithm>
#include <thread>

namespace t3d {
namespace {

constexpr std::chrono::microseconds kSlice{200};
constexpr double kComputedAtOnce = 16e-3;  // seconds

std::chrono::steady_clock::duration as_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

void Dilation::set_factor(double factor) {
  if (!on()) resume();
  factor_ = factor;
}

bool Dilation::due() const { return on() && thread_cpu_seconds() - cpu_since_ > kComputedAtOnce; }

void Dilation::resume() {
  cpu_since_ = thread_cpu_seconds();
  since_ = Clock::now();
}

void Dilation::exclude(double seconds, double cpu_seconds) {
  cpu_since_ += cpu_seconds;
  since_ += as_duration(seconds);
}

// The deadlines are absolute: a slice that overslept shortens the next one.
void Dilation::pay(const std::function<bool()>& progress) {
  const double computed = thread_cpu_seconds() - cpu_since_;
  if (computed <= 0) return;
  emulated_cpu_seconds() += (factor_ - 1) * computed;
  const auto start = Clock::now();
  const auto end = since_ + as_duration(factor_ * computed);
  bool under_way = start < end && progress();
  for (auto until = start; until < end;) {
    until = under_way ? std::min(end, std::max(until + kSlice, Clock::now())) : end;
    std::this_thread::sleep_until(until);
    if (under_way) under_way = progress();
  }
  paused_seconds() += std::chrono::duration<double>(Clock::now() - start).count();
  resume();
}

}  // namespace t3d
