// The time of a GPU rank: what its device computed, by class of operators, apart from what it
// waited for (device/queue_timer.hpp, train/step/trainer.hpp).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "hetero/speed/sample_statistics.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/emulated_gpus.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// Rank 0 has a GPU, the others compute on CPUs.
Config mixed() {
  Config config = tiny_gpt();
  config.batch.sequences = 4;
  config.mesh.device = DeviceRule::mixed;
  config.debug.watchdog_seconds = 60;
  return config;
}

struct Times {
  std::vector<RankTimes> gpu;   // of rank 0, by step
  std::vector<double> seconds;  // of steps
  std::string bytes;
};

/// `steps` of two replicas of one rank; rank 1 computes `factor` times slower.
Times times_beside(const Config& config, double factor, int steps) {
  const Plan plan = plan_of(config, Grid{}, 2);
  Times times;
  Remarks bytes;
  run_local_ranks(2, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    TrainOptions options = test_options(config, steps);
    options.slowdown = SlowdownSchedule({1, factor}, {}, 2);
    Trainer trainer(machine, plan, options, corpus(config));
    for (int step = 0; step < steps; ++step) {
      world.ledger().clear();
      const StepReport report = trainer.step(kNoFlag);
      const std::string text = difference(world.ledger(), trainer.predicted_step());
      if (!text.empty()) bytes.add(text);
      if (world.rank() != 0 || report.measured.first || report.times.empty()) continue;
      times.gpu.push_back(report.times[0]);
      times.seconds.push_back(report.measured.seconds);
    }
  });
  times.bytes = bytes.all();
  return times;
}

double median_own(const Times& times) {
  std::vector<double> own;
  for (const RankTimes& step : times.gpu) own.push_back(step.own);
  return median_of(own);
}

}  // namespace

TEST_CASE("a timer tells what a queue did, and what it waited for") {
  show_timed_gpus(1);
  const Backend gpu = make_cuda_backend(0, {});
  const auto queue = gpu.device->make_queue();
  const auto timer = queue->make_timer();
  REQUIRE(timer != nullptr);
  Tensor x(*gpu.device, DType::f32, 64, 64, MemoryKind::workspace);
  for (int again = 0; again < 2; ++again) {
    timer->enter({});
    gpu.ops->fill(*queue, x, 1);
    timer->enter({QueuePart::matmul, "matmul"});
    CHECK(timer->state().part == QueuePart::matmul);
    gpu.ops->scale(*queue, x, 2);
    timer->enter({QueuePart::waiting, "matmul"});
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    timer->enter({});
    timer->end();
    const QueueTimes times = timer->take();
    const auto& seconds = times.seconds;
    CHECK(times.intervals.empty());
    CHECK(seconds[static_cast<std::size_t>(QueuePart::waiting)] > 0.025);
    CHECK(seconds[static_cast<std::size_t>(QueuePart::matmul)] > 0);
    CHECK(seconds[static_cast<std::size_t>(QueuePart::attention)] == 0);
    CHECK(seconds[static_cast<std::size_t>(QueuePart::matmul)] < 0.025);
  }
  CHECK(make_cpu_device()->make_queue()->make_timer() == nullptr);
}

TEST_CASE("a GPU rank's own time does not grow with what it waits for") {
  show_timed_gpus(1);
  Config config = mixed();
  config.optimizer.kind = OptimizerKind::muon;
  const Times alone = times_beside(config, 1, 6);
  CHECK(alone.bytes == "");
  REQUIRE(alone.gpu.size() >= 3);
  for (const RankTimes& step : alone.gpu) {
    CHECK(step.matmul > 0);
    CHECK(step.attention > 0);
    CHECK(step.whole > 0);
    CHECK(step.other > step.whole);
    CHECK(step.own == Approx(step.matmul + step.attention + step.other));
    CHECK(step.cpu == 0);
  }
  // The other rank becomes so slow that the step takes several times as long.
  const Times waiting =
      times_beside(config, std::clamp(100 * median_own(alone) / 0.02, 100.0, 1000.0), 6);
  REQUIRE(waiting.gpu.size() >= 3);
  CHECK(median_of(waiting.seconds) > 2.5 * median_of(alone.seconds));
  CHECK(median_own(waiting) < 1.6 * median_own(alone));
}

TEST_CASE("recorded steps are timed now and then, unrecorded, and train the same") {
  show_timed_gpus(2);
  Config config = mixed();
  config.mesh.device = DeviceRule::cuda;
  const Plan plan = plan_of(config, Grid{1, 2, 1, {}, {}, {}});
  std::vector<double> recorded, launched;
  std::vector<index_t> timed;
  Remarks bytes;
  for (const bool graphs : {true, false})
    run_local_ranks(2, [&](Communicator& world) {
      Machine machine(world, test_machine(config));
      TrainOptions options = test_options(config, 44);
      options.graphs = graphs;
      Trainer trainer(machine, plan, options, corpus(config));
      for (int step = 0; step < 44; ++step) {
        world.ledger().clear();
        const StepReport report = trainer.step(kNoFlag);
        const std::string text = difference(world.ledger(), trainer.predicted_step());
        if (!text.empty()) bytes.add(text);
        if (world.rank() != 0) continue;
        (graphs ? recorded : launched).push_back(report.loss);
        if (!graphs || !machine.recordable() || report.times.empty()) continue;
        timed.push_back(report.measured.step);
        for (const RankTimes& rank : report.times)
          if (rank.own <= 0 || rank.matmul <= 0) bytes.add("a rank has no times");
      }
    });
  CHECK(bytes.all() == "");
  CHECK(recorded == launched);
  if (visible_gpus().size() >= 2)
    CHECK(timed == std::vector<index_t>{Trainer::kTimedSteps, 2 * Trainer::kTimedSteps});
}
