// debug.trace of GPU ranks: what the timer of a queue and NCCL's groups tell of their streams, and
// that steps are the same with it. Ranks are threads.
#include "run/tracing.hpp"

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "io/posix_file.hpp"
#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/emulated_gpus.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

struct Trained {
  std::vector<double> losses;
  std::map<std::string, index_t> bytes;  // of rank 0 in the steps of the window, by axis
  nlohmann::json trace;
  std::string faults;
};

constexpr index_t kFirst = 3, kLast = 4, kSteps = 6;

/// On 1 x 2 x 1 GPUs; a window that comes after the last step traces nothing.
Trained train_traced(const ScratchFolder& folder, bool traced) {
  Config config = tiny_gpt();
  config.batch.sequences = 4;
  config.batch.micro = 2;
  config.mesh.device = DeviceRule::cuda;
  config.debug.watchdog_seconds = 60;
  const Plan plan = plan_of(config, Grid{1, 2, 1, {}, {}, {}});
  Trained result;
  Remarks faults;
  run_local_ranks(2, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan, test_options(config, kSteps), corpus(config));
    const index_t after = traced ? 0 : kSteps;
    Tracing tracing(machine, {kFirst + after, kLast + after}, folder.path());
    (void)tracing.books_closed(0);
    for (index_t step = 1; step <= kSteps; ++step) {
      world.ledger().clear();
      const StepReport report = trainer.step(kNoFlag);
      const std::string text = difference(world.ledger(), trainer.predicted_step());
      if (!text.empty()) faults.add(text);
      if (world.rank() == 0) {
        result.losses.push_back(report.loss);
        for (const auto& [key, entry] : world.ledger().table())
          if (step >= kFirst && step <= kLast && entry.bytes > 0)
            result.bytes[key.second] += entry.bytes;
      }
      (void)tracing.books_closed(step);
    }
  });
  result.faults = faults.all();
  if (traced) result.trace = nlohmann::json::parse(read_text_file(folder.path() + "/trace.json"));
  return result;
}

struct Times {
  double start = 0, end = 0;
};
Times times_of(const nlohmann::json& span) {
  const double start = span["ts"];
  return {start, start + span["dur"].get<double>()};
}

}  // namespace

TEST_CASE("the trace of GPU ranks has their streams, and changes no step") {
  show_timed_gpus(2);
  const ScratchFolder folder("gpu_trace");
  const Trained with = train_traced(folder, true), without = train_traced(folder, false);
  CHECK(with.faults == "");
  CHECK(with.losses == without.losses);

  std::map<std::string, index_t> bytes;
  std::map<int, std::map<index_t, Times>> steps;        // by rank
  std::map<std::pair<int, int>, double> end_of_stream;  // by rank and thread, of communication
  std::map<std::string, int> spans;                     // of rank 0, by category
  constexpr double kRounding = 0.0021;
  for (const auto& span : with.trace["traceEvents"])
    if (span["ph"] == "X" && span["cat"] == "stream step")
      steps[span["pid"]][span["args"]["step"]] = times_of(span);
  for (const auto& span : with.trace["traceEvents"]) {
    if (span["ph"] != "X") continue;
    const std::string kind = span["cat"];
    if (span["pid"] == 0) {
      ++spans[kind];
      if (kind == "communication" || kind == "collective")
        bytes[span["args"]["axis"]] += span["args"]["bytes"].get<index_t>();
    }
    const Times times = times_of(span);
    if (kind == "stream" || kind == "communication") {
      const Times step = steps.at(span["pid"]).at(span["args"]["step"]);
      CHECK(times.start >= step.start - kRounding);
      CHECK(times.end <= step.end + kRounding);
    }
    if (kind == "communication") {
      double& before = end_of_stream.try_emplace({span["pid"], span["tid"]}, -1e300).first->second;
      CHECK(times.start >= before - kRounding);
      before = times.end;
    }
  }
  CHECK(bytes == with.bytes);
  for (const int rank : {0, 1}) CHECK(steps[rank].size() == kLast - kFirst + 1);
  CHECK(spans["stream"] > 20);
  if (visible_gpus().size() >= 2) CHECK(spans["communication"] > 10);
}

TEST_CASE("a timer tells phases of one part apart while the queue's clock runs") {
  show_timed_gpus(1);
  const Backend gpu = make_cuda_backend(0, {});
  const auto queue = gpu.device->make_queue();
  const auto timer = queue->make_timer();
  Tensor x(*gpu.device, DType::f32, 64, 64, MemoryKind::workspace);
  const auto do_two = [&] {
    for (const char* phase : {"matmul", "head"}) {
      timer->enter({QueuePart::matmul, phase});
      gpu.ops->fill(*queue, x, 1);
    }
    timer->end();
    return timer->take();
  };
  CHECK(do_two().intervals.empty());
  const auto first = queue->read_clock();
  REQUIRE(first);
  const QueueTimes times = do_two();
  const auto last = queue->read_clock();
  REQUIRE(times.intervals.size() == 2);
  const QueueInterval &matmul = times.intervals[0], &head = times.intervals[1];
  CHECK(std::string(matmul.state.phase) == "matmul");
  CHECK(std::string(head.state.phase) == "head");
  CHECK(matmul.end == head.start);
  CHECK(first->device <= matmul.start);
  CHECK(head.end <= last->device);
  // Both clocks run alike.
  const double on_host = static_cast<double>(last->host - first->host);
  const double on_device = static_cast<double>(last->device - first->device);
  CHECK(std::abs(on_host - on_device) <= static_cast<double>(first->error + last->error));
  queue->stop_clock();
  CHECK(do_two().intervals.empty());
  CHECK(!make_cpu_device()->make_queue()->read_clock());
}
