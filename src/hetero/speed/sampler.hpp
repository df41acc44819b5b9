// Timing of work on a queue, until the median is known well enough or the time is up.
#pragma once
#include <functional>

#include "device/queue.hpp"

namespace t3d {

struct SampleRule {
  double error = 0.005;  // relative standard error of the median that is good enough
  double shortest = 2e-3, longest = 0.1;  // seconds of a sample
  /// Seconds of the calling thread's CPU time: where ranks share cores, wall time is their
  /// neighbours' doing. For one thread on a CPU only.
  bool cpu_time = false;
  /// After each call the thread sleeps for so many times what it took, kLongestRest at most: others
  /// use cores and caches meanwhile, as while an emulated slower rank sleeps (comm/dilation.hpp).
  /// Not counted. With cpu_time only.
  double rest = 0;
};
inline constexpr double kLongestRest = 16e-3;  // seconds

struct Sampled {
  double seconds = 0;  // median, of one call
  double error = 1;    // relative; 1 where there were too few samples to tell
};

/// Wall seconds (or the thread's CPU seconds) from an empty queue to its being empty again, by
/// `calls` calls of `body`: on a GPU the device's time, once the calls are long enough together.
/// Of the rule's: cpu_time and rest.
[[nodiscard]] double timed(Queue& queue, const std::function<void()>& body, int calls,
                           const SampleRule& rule = {});

/// About `seconds` of wall time at most, but at least one call.
[[nodiscard]] Sampled sample(Queue& queue, const std::function<void()>& body, double seconds,
                             const SampleRule& rule);

}  // namespace t3d
