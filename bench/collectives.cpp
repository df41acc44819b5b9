// Speed of the collectives in the manner of nccl-tests: time per call, bytes a rank handles per second
// (algbw) and what that means for the busiest link (busbw), and how much of a call disappears behind
// arithmetic that polls.
//
//   mpirun -n 4 t3d_bench_collectives [largest MiB per rank = 8]
//   mpirun -n 1 env T3D_LOCAL_RANKS=4 ...: not needed; T3D_LOCAL_RANKS=4 t3d_bench_collectives uses threads
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <numeric>

#include "comm/mpi/mpi_world.hpp"
#include "comm/placement.hpp"

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double slowest(Communicator& world, double seconds) {
  world.all_reduce({&seconds, DType::f64, 1, 1}, ReduceOp::max).wait_host();
  return seconds;
}

// Median over repetitions of the slowest rank's time for `call`.
double median_time(Communicator& world, int repeat, const std::function<void()>& call) {
  call();
  std::vector<double> times;
  for (int at = 0; at < repeat; ++at) {
    world.barrier();
    const auto start = Clock::now();
    call();
    times.push_back(slowest(world, seconds_since(start)));
  }
  std::nth_element(times.begin(), times.begin() + repeat / 2, times.end());
  return times[static_cast<std::size_t>(repeat / 2)];
}

// Arithmetic in slices of some 50 microseconds with a poll after each.
float work_for(double seconds, Communicator* polled) {
  float value = 1;
  for (const auto start = Clock::now(); seconds_since(start) < seconds;) {
    for (int at = 0; at < 20000; ++at) value = value * 0.999F + 0.5F;
    if (polled != nullptr) polled->progress();
  }
  return value;
}

struct Row {
  const char* verb;
  double bus_factor;  // busbw / algbw
  std::function<Work()> start;
};

void bench(Communicator& world, index_t bytes) {
  const int n = world.size();
  const index_t per_rank = std::max<index_t>(1, bytes / 4 / n);
  const index_t count = per_rank * n;
  std::vector<float> whole(static_cast<std::size_t>(count), 1);
  std::vector<float> part(static_cast<std::size_t>(per_rank), 1);
  const std::vector<index_t> counts(static_cast<std::size_t>(n), per_rank);
  const TensorView all(whole.data(), DType::f32, 1, count);
  const TensorView own(part.data(), DType::f32, 1, per_rank);
  const double share = static_cast<double>(n - 1) / n;
  const std::vector<Row> rows{
      {"all_gather", share, [&] { return world.all_gather(own, all, counts); }},
      {"reduce_scatter", share, [&] { return world.reduce_scatter(all, own, counts); }},
      {"all_reduce", 2 * share, [&] { return world.all_reduce(all, ReduceOp::sum); }},
      {"broadcast", 1, [&] { return world.broadcast(all, 0); }},
  };
  const int repeat = bytes > (1 << 22) ? 11 : 41;
  for (const Row& row : rows) {
    std::fill(whole.begin(), whole.end(), 0.0F);
    const double seconds = median_time(world, repeat, [&] { row.start().wait_host(); });
    volatile float sink = 0;
    const double alone =
        median_time(world, repeat, [&] { sink = work_for(2 * seconds, nullptr); });
    const double both = median_time(world, repeat, [&] {
      Work work = row.start();
      sink = work_for(2 * seconds, &world);
      work.wait_host();
    });
    const double hidden = 100 * std::clamp((alone + seconds - both) / seconds, -9.99, 1.0);
    if (world.rank() == 0) {
      const double algbw = static_cast<double>(count * 4) / seconds * 1e-9;
      fmt::print("{:>14} {:>12} {:>12.1f} {:>8.2f} {:>8.2f} {:>9.0f}\n", row.verb, count * 4,
                 seconds * 1e6, algbw, algbw * row.bus_factor, hidden);
      std::fflush(stdout);
    }
  }
}

void bench_all(Communicator& world, index_t largest) {
  if (world.rank() == 0)
    fmt::print("# {} ranks, {} cores, float32\n{:>14} {:>12} {:>12} {:>8} {:>8} {:>9}\n", world.size(),
               cores_available(), "verb", "bytes", "time us", "algbw", "busbw", "overlap %");
  for (index_t bytes = 64; bytes <= largest; bytes *= 16) bench(world, bytes);
  if (largest % 16 != 0 || largest > 0) bench(world, largest);
}

}  // namespace
}  // namespace t3d

int main(int argc, char** argv) {
  const t3d::MpiSession session(argc, argv);
  const t3d::index_t largest = t3d::index_t{argc > 1 ? std::atoi(argv[1]) : 8} << 20;
  if (const char* ranks = std::getenv("T3D_LOCAL_RANKS"); ranks != nullptr) {
    t3d::run_local_ranks(std::atoi(ranks),
                         [&](t3d::Communicator& world) { t3d::bench_all(world, largest); });
    return 0;
  }
  const auto world = t3d::make_mpi_world();
  t3d::bench_all(*world, largest);
  return 0;
}
