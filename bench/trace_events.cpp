// What one event of debug.trace costs the rank that is traced, in nanoseconds of processor time:
// with the spans per step that bench/trace_overhead.py prints, what tracing can cost a step.
//
//   build/cpu/bench/t3d_bench_trace_events
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "core/phase_clock.hpp"
#include "core/tracer.hpp"

using namespace t3d;

namespace {

constexpr int kEvents = 100'000, kRepeats = 9;

/// The median of several times, per event. `events` is given a tracer with room for all of them.
template <class Events>
double nanoseconds(const Events& events) {
  std::vector<double> times;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    Tracer tracer(std::size_t{2} * kEvents);
    const double before = thread_cpu_seconds();
    events(tracer);
    times.push_back(1e9 * (thread_cpu_seconds() - before) / kEvents);
    if (tracer.lost() > 0) fmt::print("no room\n");
  }
  std::nth_element(times.begin(), times.begin() + kRepeats / 2, times.end());
  return times[kRepeats / 2];
}

double of_phase(bool traced) {
  return nanoseconds([traced](Tracer& tracer) {
    PhaseClock clock;
    std::optional<PhaseClock::Listener> listener;
    if (traced) listener.emplace(clock, [&tracer](const char* phase) { tracer.enter(phase); });
    for (int event = 0; event < kEvents; ++event) const PhaseClock::Scope scope(clock, "matmul");
  });
}

double of_collective(bool waited) {
  return nanoseconds([waited](Tracer& tracer) {
    const int group = tracer.add_group("k", {0, 1});
    for (int event = 0; event < kEvents; ++event) {
      const TraceMark mark = tracer.begin(group, "all_reduce", 8);
      tracer.end(mark);
      if (waited) tracer.waited(mark, 1);
    }
  });
}

}  // namespace

int main() {
  const double phase = of_phase(false);
  fmt::print("a phase without a trace: {:.0f} ns; with one: {:.0f} ns more\n", phase,
             of_phase(true) - phase);
  const double collective = of_collective(false);
  fmt::print("a collective: {:.0f} ns; a wait for it: {:.0f} ns\n", collective,
             of_collective(true) - collective);
}
