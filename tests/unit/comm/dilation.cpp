// Ranks that compute slower for emulation (comm/dilation.hpp), alone and inside a communicator.
// Bounds from above are wide: a sleep ends when the machine has a core for it.
#include "comm/dilation.hpp"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "comm/communicator.hpp"
#include "core/error.hpp"
#include "support/catch.hpp"

using namespace t3d;

namespace {

/// Computes for that much CPU time of this thread; returns what it was.
double compute(double seconds) {
  const double start = thread_cpu_seconds();
  while (thread_cpu_seconds() - start < seconds) {
  }
  return thread_cpu_seconds() - start;
}

double now() {
  using namespace std::chrono;
  return duration<double>(steady_clock::now().time_since_epoch()).count();
}

void sum(Communicator& world, float& x) {
  world.all_reduce({&x, DType::f32, 1, 1}, ReduceOp::sum).wait_host();
}

}  // namespace

TEST_CASE("what was computed is paid by sleeping, with progress in between", "[dilation]") {
  Dilation dilation;
  CHECK(!dilation.on());
  dilation.set_factor(20);
  CHECK(dilation.on());
  int turns = 0;
  const double emulated = emulated_cpu_seconds(), cpu_before = thread_cpu_seconds(), start = now();
  const double computed = compute(0.015);
  dilation.pay([&] { return ++turns > 0; });
  CHECK(emulated_cpu_seconds() - emulated == Approx(19 * computed).epsilon(0.1));
  CHECK(now() - start >= 0.98 * 20 * computed);
  CHECK(thread_cpu_seconds() - cpu_before < 10 * computed);  // it did not burn a core
  CHECK(turns >= 10);
  // It is paid once.
  const double after = paused_seconds();
  dilation.pay([] { return true; });
  CHECK(paused_seconds() - after < 0.1);
}

TEST_CASE("without messages the sleep is one piece", "[dilation]") {
  Dilation dilation;
  dilation.set_factor(5);
  const double start = now();
  const double computed = compute(0.02);
  int turns = 0;
  dilation.pay([&] { return ++turns < 3; });
  CHECK(now() - start >= 0.98 * 5 * computed);
  CHECK(turns == 3);
}

TEST_CASE("what does not count as computing is not paid", "[dilation]") {
  Dilation dilation;
  dilation.set_factor(5);
  const double excluded = compute(0.05);
  dilation.exclude(excluded, excluded);
  const double before = paused_seconds();
  dilation.pay([] { return true; });
  CHECK(paused_seconds() - before < 0.1);  // instead of 0.2
  compute(0.05);
  dilation.resume();
  const double again = paused_seconds();
  dilation.pay([] { return true; });
  CHECK(paused_seconds() - again < 0.1);
}

TEST_CASE("a core lost to others is part of the sleep", "[dilation]") {
  Dilation dilation;
  dilation.set_factor(10);
  const double before = paused_seconds(), emulated = emulated_cpu_seconds(), start = now();
  const double computed = compute(0.02);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  dilation.pay([] { return true; });
  CHECK(now() - start >= 0.98 * 10 * computed);
  CHECK(paused_seconds() - before <= 9 * computed - 0.05);
  CHECK(emulated_cpu_seconds() - emulated == Approx(9 * computed).epsilon(0.1));
}

TEST_CASE("what was computed before it is switched on is not paid", "[dilation]") {
  compute(0.05);
  Dilation dilation;
  dilation.set_factor(5);
  const double before = paused_seconds();
  dilation.pay([] { return true; });
  CHECK(paused_seconds() - before < 0.1);
}

TEST_CASE("a rank of factor 3 takes three times its CPU time between two verbs", "[dilation]") {
  std::vector<double> computed(2), paused(2), emulated(2), took(2);
  run_local_ranks(2, [&](Communicator& world) {
    const auto rank = static_cast<std::size_t>(world.rank());
    float x = 1;
    sum(world, x);
    world.set_slowdown(rank == 1 ? 3 : 1);
    const double before = paused_seconds(), start = now();
    const double emulated_before = emulated_cpu_seconds();
    for (int step = 0; step < 3; ++step) {
      computed[rank] += compute(0.01);
      sum(world, x);
    }
    paused[rank] = paused_seconds() - before;
    emulated[rank] = emulated_cpu_seconds() - emulated_before;
    took[rank] = now() - start;
    world.set_slowdown(1);
    compute(0.01);
    sum(world, x);
    T3D_CHECK(paused_seconds() - before == paused[rank], "it goes on after it was switched off");
  });
  CHECK(paused[0] == 0);
  CHECK(emulated[0] == 0);
  CHECK(emulated[1] >= 0.95 * 2 * computed[1]);
  CHECK(emulated[1] <= 10 * computed[1]);
  CHECK(took[1] >= 0.95 * 3 * computed[1]);
}

// Rank 0's sum needs work of rank 1, which sleeps for long: it is done meanwhile.
TEST_CASE("messages of others do not wait for the sleep", "[dilation]") {
  std::atomic<bool> over = false;
  bool over_in_time = false;
  double paused = 0;
  run_local_ranks(2, [&](Communicator& world) {
    std::vector<float> numbers(200000, 1.0F);
    float x = 1;
    sum(world, x);
    if (world.rank() == 1) world.set_slowdown(50);
    Work work =
        world.all_reduce({numbers.data(), DType::f32, 1, std::ssize(numbers)}, ReduceOp::sum);
    if (world.rank() == 0) {
      work.wait_host();
      over = true;
      sum(world, x);
      return;
    }
    const double before = paused_seconds();
    compute(0.01);
    Work small = world.all_reduce({&x, DType::f32, 1, 1}, ReduceOp::sum);
    paused = paused_seconds() - before;  // half a second
    over_in_time = over;
    work.wait_host();
    small.wait_host();
  });
  CHECK(paused >= 0.4);
  CHECK(over_in_time);
}
