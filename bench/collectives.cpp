// Speed of the collectives in the manner of nccl-tests: time per call, bytes a rank handles per
// second (algbw) and what that means for the busiest link (busbw), and how much of a call
// disappears behind arithmetic that polls.
//
//   mpirun -n 4 t3d_bench_collectives [largest MiB per rank = 8]
//   T3D_LOCAL_RANKS=4 t3d_bench_collectives           the same among threads
//   mpirun -n 24 t3d_bench_collectives small          a few bytes, beside MPI's own collectives
#include <fmt/core.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string_view>

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

// Best over repetitions of the slowest rank's time for `call`: other work on the machine only adds.
double best_time(Communicator& world, int repeat, const std::function<void()>& call) {
  call();
  double best = std::numeric_limits<double>::max();
  for (int at = 0; at < repeat; ++at) {
    world.barrier();
    const auto start = Clock::now();
    call();
    best = std::min(best, slowest(world, seconds_since(start)));
  }
  return best;
}

// A slice of arithmetic, some 30 microseconds; polls come between slices.
float slice() {
  float value = 1;
  for (int at = 0; at < 10000; ++at) value = value * 0.999F + 0.5F;
  return value;
}

void work_for(int slices, Communicator* polled) {
  volatile float sink = 0;
  for (int at = 0; at < slices; ++at) {
    sink = slice();
    if (polled != nullptr) polled->progress();
  }
  (void)sink;
}

// Per cent of a call of `seconds` that twice as much polled arithmetic hides.
std::string overlap(Communicator& world, double seconds, double slice_seconds, int repeat,
                    const std::function<Work()>& start) {
  const int slices = static_cast<int>(2 * seconds / slice_seconds);
  // Nothing to see when the call is shorter than the slices or when ranks take turns on the cores.
  if (slices < 8 || world.size() > cores_available()) return "-";
  const double alone = best_time(world, repeat, [&] { work_for(slices, nullptr); });
  const double both = best_time(world, repeat, [&] {
    Work work = start();
    work_for(slices, &world);
    work.wait_host();
  });
  return fmt::format("{:.0f}", 100 * (alone + seconds - both) / seconds);
}

struct Row {
  const char* verb;
  double bus_factor;  // busbw / algbw
  std::function<Work()> start;
};

void bench(Communicator& world, index_t bytes, double slice_seconds) {
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
    const double seconds = best_time(world, repeat, [&] { row.start().wait_host(); });
    const std::string hidden = overlap(world, seconds, slice_seconds, repeat, row.start);
    if (world.rank() == 0) {
      const double algbw = static_cast<double>(count * 4) / seconds * 1e-9;
      fmt::print("{:>14} {:>12} {:>12.1f} {:>8.2f} {:>8.2f} {:>9}\n", row.verb, count * 4,
                 seconds * 1e6, algbw, algbw * row.bus_factor, hidden);
      std::fflush(stdout);
    }
  }
}

void bench_all(Communicator& world, index_t largest) {
  if (world.rank() == 0)
    fmt::print("# {} ranks, {} cores, float32\n{:>14} {:>12} {:>12} {:>8} {:>8} {:>9}\n",
               world.size(), cores_available(), "verb", "bytes", "time us", "algbw", "busbw",
               "overlap %");
  const double slice_seconds = best_time(world, 41, [] { work_for(10, nullptr); }) / 10;
  for (index_t bytes = 64; bytes < largest; bytes *= 16) bench(world, bytes, slice_seconds);
  bench(world, largest, slice_seconds);
}

// Microseconds per call of many in a row, the best of several series.
double time_in_a_row(Communicator& world, const std::function<void()>& call) {
  constexpr int kCalls = 50;
  return best_time(world, 7,
                   [&] {
                     for (int at = 0; at < kCalls; ++at) call();
                   }) /
         kCalls * 1e6;
}

// `bytes` is what a rank contributes. MPI chooses its own algorithm and its own order of sums.
void bench_small(Communicator& world, index_t bytes) {
  const int n = world.size();
  const index_t count = bytes / 4;
  std::vector<float> part(static_cast<std::size_t>(count), 1), sum(part);
  std::vector<float> whole(static_cast<std::size_t>(count * n));
  const std::vector<index_t> counts(static_cast<std::size_t>(n), count);
  const TensorView own(part.data(), DType::f32, 1, count),
      all(whole.data(), DType::f32, 1, count * n);
  const auto numbers = static_cast<int>(count);
  struct Pair {
    const char* verb;
    std::function<void()> ours, mpi;
  };
  const std::vector<Pair> pairs{
      {"all_gather", [&] { world.all_gather(own, all, counts).wait_host(); },
       [&] {
         MPI_Allgather(part.data(), numbers, MPI_FLOAT, whole.data(), numbers, MPI_FLOAT,
                       MPI_COMM_WORLD);
       }},
      {"all_reduce",
       [&] {
         world.all_reduce({sum.data(), DType::f32, 1, count}, ReduceOp::max).wait_host();
       },
       [&] {
         MPI_Allreduce(MPI_IN_PLACE, sum.data(), numbers, MPI_FLOAT, MPI_MAX, MPI_COMM_WORLD);
       }},
      {"broadcast", [&] { world.broadcast(own, 0).wait_host(); },
       [&] { MPI_Bcast(part.data(), numbers, MPI_FLOAT, 0, MPI_COMM_WORLD); }},
      {"barrier", [&] { world.barrier(); }, [] { MPI_Barrier(MPI_COMM_WORLD); }},
  };
  for (const auto& [verb, ours, mpi] : pairs) {
    const double own_time = time_in_a_row(world, ours), mpi_time = time_in_a_row(world, mpi);
    if (world.rank() == 0)
      fmt::print("{:>6} {:>12} {:>8} {:>10.1f} {:>10.1f}\n", n, verb, bytes, own_time, mpi_time);
  }
}

void bench_all_small(Communicator& world) {
  if (world.rank() == 0)
    fmt::print("# {} ranks, {} cores{}\n{:>6} {:>12} {:>8} {:>10} {:>10}\n", world.size(),
               cores_available(), world.size() > cores_available() ? " (oversubscribed)" : "",
               "ranks", "verb", "bytes", "ours us", "MPI us");
  for (index_t bytes = 64; bytes <= 4096; bytes *= 4) bench_small(world, bytes);
}

}  // namespace
}  // namespace t3d

int main(int argc, char** argv) {
  const t3d::MpiSession session(argc, argv);
  if (argc > 1 && std::string_view(argv[1]) == "small") {
    t3d::bench_all_small(*t3d::make_mpi_world());
    return 0;
  }
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
