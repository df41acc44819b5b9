#include "hetero/speed/group_timer.hpp"

#include "core/robust.hpp"
#include "hetero/speed/probe.hpp"

namespace t3d {

Sampled GroupTimer::seconds(const std::function<void()>& body, int samples, int calls) {
  (void)timed(machine_.queue, body, 1);
  std::vector<double> times;
  for (int n = 0; n < samples; ++n) times.push_back(timed(machine_.queue, body, calls) / calls);
  const double error = median_error_of(times);
  const double seconds = largest(median_of(std::move(times)));
  return {seconds, largest(error) / seconds};
}

double GroupTimer::largest(double own) {
  machine_.ops.fill(machine_.queue, number_, own);
  group_.all_reduce(number_, ReduceOp::max).wait(machine_.queue);
  double result = 0;
  machine_.device.copy(&result, number_.data, sizeof result, machine_.queue);
  machine_.queue.synchronize();
  return result;
}

}  // namespace t3d
