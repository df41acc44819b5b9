#include "train/transport_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "train/device_numbers.hpp"

namespace t3d {
namespace {

constexpr index_t kFew = 64, kMany = index_t{1} << 18;  // numbers of 4 bytes
constexpr int kRuns = 5;

/// The median of a few runs, in seconds.
double seconds_of(const Context& context, const std::function<void()>& work) {
  std::array<double, kRuns> seconds{};
  work();  // the first one opens connections and fills caches
  for (double& run : seconds) {
    context.queue.synchronize();
    const double start = PhaseClock::now();
    work();
    context.queue.synchronize();
    run = PhaseClock::now() - start;
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return seconds[kRuns / 2];
}

/// With the neighbour of replica xor 1, both ways; nobody where there is none.
void swap_with_neighbour(const Context& context, ConstTensorView send, TensorView receive) {
  Communicator& replicas = context.mesh.along(Axis::d);
  const int peer = replicas.rank() ^ 1;
  if (peer < replicas.size()) replicas.exchange({{peer, send, receive}}).wait(context.queue);
}

}  // namespace

LinkTimes measure_links(const Context& context) {
  const Tensor send = context.make(DType::f32, 1, kMany, MemoryKind::workspace);
  const Tensor receive = context.make(DType::f32, 1, kMany, MemoryKind::workspace);
  const Tensor sums = zeros(context, 1, kFew);
  context.ops.fill(context.queue, send, 1);
  const auto swap = [&](index_t count) {
    return seconds_of(context, [&] {
      swap_with_neighbour(context, send.view().col_range(0, count),
                          receive.view().col_range(0, count));
    });
  };
  std::array<double, 4> times{swap(kFew), swap(kMany), 0, 0};
  times[2] = seconds_of(
      context, [&] { context.mesh.world().all_reduce(sums, ReduceOp::sum).wait(context.queue); });
  times[3] = seconds_of(context, [&] { context.ops.copy(context.queue, send, receive.view()); });
  context.control.all_reduce({times.data(), DType::f64, 1, 4}, ReduceOp::max).wait_host();
  constexpr double kBytes = kMany * 4.0;
  return {times[0], std::max(0.0, times[1] - times[0]) / kBytes, times[2], times[3] / (2 * kBytes)};
}

// One exchange and one gather of all chunks, one sum; the chunks are read twice and the result is
// written once.
double gram_seconds(const LinkTimes& times, const AggregateLoad& load) {
  const auto n = static_cast<double>(load.replicas);
  const double wire = 2 * (n - 1) / n * load.bytes * times.seconds_per_byte;
  const double messages = 2 * (n - 1) * load.messages * times.message_seconds;
  return wire + messages + times.small_sum_seconds +
         (2 + 1 / n) * load.bytes * times.pass_seconds_per_byte;
}

// Halves at every level, with one message each way and one sum; two vectors are read twice and one
// is written.
double rvh_seconds(const LinkTimes& times, const AggregateLoad& load) {
  const auto n = static_cast<double>(load.replicas);
  const double levels = std::ceil(std::log2(n));
  const double wire = 2 * (n - 1) / n * load.bytes * times.seconds_per_byte;
  const double messages = 2 * levels * load.messages * times.message_seconds;
  return wire + messages + levels * times.small_sum_seconds +
         5 * (1 - 1 / n) * load.bytes * times.pass_seconds_per_byte;
}

std::string choose_transport(const AggregateSetup& setup, bool clips) {
  const AggregateConfig& options = setup.options;
  const bool rvh_can = options.method == "adasum" &&
                       (options.placement == "post" || (options.placement == "pre" && !clips)) &&
                       options.wire == "fp32" && options.leaf == "linear" &&
                       setup.context.activation != DType::f16;
  if (!rvh_can || setup.leaves.replicas == 1 || !setup.context.mesh.shape().alike()) return "gram";
  AggregateLoad load{setup.leaves.replicas, 0, static_cast<double>(setup.buckets.size())};
  for (const ParamBucket* bucket : setup.buckets)
    load.bytes += static_cast<double>(bucket->shard_count()) *
                  static_cast<double>(size_of(setup.context.accumulator()));
  // Shares differ in size between ranks; the choice must not.
  setup.context.control.all_reduce({&load.bytes, DType::f64, 1, 1}, ReduceOp::max).wait_host();
  const LinkTimes times = measure_links(setup.context);
  return rvh_seconds(times, load) < gram_seconds(times, load) ? "rvh" : "gram";
}

}  // namespace t3d
