#include "run/matmul_rate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/phase_clock.hpp"

namespace t3d {
namespace {

struct Products {
  double rate = 0;     // flops per second of all ranks together, at best
  double seconds = 0;  // of one product, on the slowest rank
};

// Products of size^3, all ranks at once. The best of several short windows: other programs only
// ever make it slower.
Products measure_products(Machine& machine, DType type, index_t size, int windows) {
  constexpr double kSeconds = 0.03;
  const auto make = [&] {
    Tensor x(machine.device(), type, size, size, MemoryKind::workspace);
    machine.ops().random_init(machine.queue(), x, {1, 1}, 0, 0, size, 1.0);
    return x;
  };
  const Tensor a = make();
  const Tensor b = make();
  const Tensor c = make();
  GemmArgs args;
  args.a = a;
  args.b = b;
  args.c = c;
  args.transpose_b = true;
  const auto timed = [&](index_t repeats) {
    const double start = PhaseClock::now();
    for (index_t n = 0; n < repeats; ++n) machine.ops().gemm(machine.queue(), args);
    machine.queue().synchronize();
    return PhaseClock::now() - start;
  };
  (void)timed(1);
  Products result;
  const std::array<double, 3> once{timed(1), timed(1), timed(1)};
  // By the longest: on a busy machine most products take a hundred times as long as the shortest.
  const double longest = *std::max_element(once.begin(), once.end());
  const auto repeats = std::max<index_t>(1, static_cast<index_t>(kSeconds / longest));
  double flops = 2.0 * static_cast<double>(size * size * size * repeats);
  machine.world().all_reduce({&flops, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
  double spent = 0;
  for (int window = 0; window < windows && spent < 10 * kSeconds; ++window) {
    // From the first rank's start to the last one's end: where ranks share cores they take turns.
    machine.world().barrier();
    const double start = PhaseClock::now();
    (void)timed(repeats);
    machine.world().barrier();
    double seconds = PhaseClock::now() - start;
    machine.world().all_reduce({&seconds, DType::f64, 1, 1}, ReduceOp::max).wait_host();
    result.rate = std::max(result.rate, flops / seconds);
    spent += seconds;
  }
  result.seconds = *std::min_element(once.begin(), once.end());
  machine.world().all_reduce({&result.seconds, DType::f64, 1, 1}, ReduceOp::max).wait_host();
  return result;
}

}  // namespace

MatmulRate measure_matmul_rate(Machine& machine, DType type, const MatmulRate& known) {
  MatmulRate rate{fmt::format("{} {}", machine.ops().name(), name_of(type)), 0, 0};
  if (machine.ops().name() == "reference") return rate;
  // Large enough that a product takes milliseconds, whatever computes. On a busy machine a small
  // one takes that long too, as its threads wait for cores.
  constexpr double kLongEnough = 2e-3, kLong = 5e-2;
  constexpr index_t kSmall = 384, kLargest = 8192;
  constexpr int kWindows = 5;
  double seconds = 0;
  const auto measure = [&](index_t size, int windows) {
    const auto [best, longest] = measure_products(machine, type, size, windows);
    if (best > rate.flops_per_second) rate = {rate.kind, best, size};
    seconds = longest;
  };
  const auto larger = [&](index_t size) { return seconds < (size > kSmall ? kLongEnough : kLong); };
  if (known.kind == rate.kind && known.size > 0) {
    rate = known;
    measure(known.size, 1);
  } else {
    for (index_t size = 96; size <= kLargest && larger(size); size *= 2) measure(size, kWindows);
  }
  machine.device().trim();  // what was measured with is not the model's memory
  machine.device().restart_peaks();
  return rate;
}

}  // namespace t3d
