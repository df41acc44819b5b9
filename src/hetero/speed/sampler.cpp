#include "hetero/speed/sampler.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <vector>

#include "core/phase_clock.hpp"
#include "core/thread_clock.hpp"
#include "hetero/speed/sample_statistics.hpp"

namespace t3d {

namespace {

double rest_after(double seconds, const SampleRule& rule) {
  return std::min(rule.rest * seconds, kLongestRest);
}

double timed_with_rests(Queue& queue, const std::function<void()>& body, int calls,
                        const SampleRule& rule) {
  double sum = 0;
  for (int call = 0; call < calls; ++call) {
    queue.mark()->wait();
    const double start = thread_cpu_seconds();
    body();
    queue.mark()->wait();
    const double seconds = thread_cpu_seconds() - start;
    sum += seconds;
    std::this_thread::sleep_for(std::chrono::duration<double>(rest_after(seconds, rule)));
  }
  return sum;
}

}  // namespace

double timed(Queue& queue, const std::function<void()>& body, int calls, const SampleRule& rule) {
  if (rule.rest > 0) return timed_with_rests(queue, body, calls, rule);
  const auto now = [&] { return rule.cpu_time ? thread_cpu_seconds() : PhaseClock::now(); };
  queue.mark()->wait();
  const double start = now();
  for (int call = 0; call < calls; ++call) body();
  queue.mark()->wait();
  return now() - start;
}

Sampled sample(Queue& queue, const std::function<void()>& body, double seconds,
               const SampleRule& rule) {
  const double end = PhaseClock::now() + seconds;
  const auto fits = [&](double next) { return PhaseClock::now() + next <= end; };
  const auto measured = [&](int calls) { return timed(queue, body, calls, rule); };
  const double first = measured(1);  // touches pages, makes primitives, chooses engines
  if (!fits(first)) return {first, 1};
  const double once = measured(1);
  // Room for some 25 samples, or for eight shorter ones.
  const double shortest = std::min(rule.shortest, seconds / 8);
  const double wished = std::clamp(seconds / 25, shortest, rule.longest);
  const int calls = std::max(1, static_cast<int>(std::ceil(wished / std::max(once, 1e-9))));
  const double long_sample = (once + rest_after(once, rule)) * calls;
  const auto next = [&] { return measured(calls) / calls; };

  WarmUp warm_up;
  const double warm = PhaseClock::now() + 0.2 * seconds;
  while (PhaseClock::now() + long_sample < warm)
    if (warm_up.add(next())) break;
  std::vector<double> times;
  if (calls == 1) times.push_back(once);
  for (const std::size_t enough : {std::size_t{15}, std::size_t{31}, std::size_t{63}}) {
    while (times.size() < enough && fits(long_sample)) times.push_back(next());
    if (times.size() < enough || median_error_of(times) < rule.error * median_of(times)) break;
  }
  if (times.size() < 3) return {times.empty() ? once : median_of(times), 1};
  return {median_of(times), median_error_of(times) / median_of(times)};
}

}  // namespace t3d
