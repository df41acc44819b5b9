#include "ops/cuda/engine_trial.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "device/cuda/cuda_queue.hpp"

namespace t3d::cuda {
namespace {

/// Space for outputs, with their leading dimensions and alignment.
class OutputCopy {
 public:
  OutputCopy(Device& device, const std::vector<TensorView>& outputs) {
    for (const TensorView& output : outputs) {
      const index_t size = size_of(output.dtype);
      const auto place = static_cast<index_t>(reinterpret_cast<std::uintptr_t>(output.data) % 16);
      memory_.emplace_back(device, output.dtype, 1, place / size + span(output),
                           MemoryKind::workspace);
      auto* data = memory_.back().view().at(0, place / size);
      views_.push_back({data, output.dtype, output.rows, output.cols, output.ld});
    }
  }
  [[nodiscard]] const std::vector<TensorView>& views() const { return views_; }

  void fill_from(Device& device, Queue& queue, const std::vector<TensorView>& outputs) {
    for (std::size_t i = 0; i < views_.size(); ++i)
      device.copy(views_[i].data, outputs[i].data, span(outputs[i]) * size_of(outputs[i].dtype),
                  queue);
  }

 private:
  static index_t span(const TensorView& x) { return x.empty() ? 0 : (x.rows - 1) * x.ld + x.cols; }

  std::vector<Tensor> memory_;
  std::vector<TensorView> views_;
};

class Event {
 public:
  Event() { check(cudaEventCreate(&event_), "creating an event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  void record(Queue& queue) { check(cudaEventRecord(event_, stream_of(queue)), "timing"); }
  [[nodiscard]] double microseconds_since(const Event& begin) const {
    float milliseconds = 0;
    check(cudaEventSynchronize(event_), "timing");
    check(cudaEventElapsedTime(&milliseconds, begin.event_, event_), "timing");
    return 1000.0 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

double worst_error(Device& device, Queue& queue, const std::vector<TensorView>& got,
                   const std::vector<TensorView>& expected) {
  double worst = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    worst = std::max(worst, relative_error(device, queue, got[i], expected[i]));
  return worst;
}

}  // namespace

bool is_recording(Queue& queue) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream_of(queue), &status), "asking whether work is recorded");
  return status != cudaStreamCaptureStatusNone;
}

double microseconds_of(Queue& queue, const std::function<void()>& work) {
  Event begin, end;
  double best = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 3; ++repeat) {
    begin.record(queue);
    work();
    end.record(queue);
    best = std::min(best, end.microseconds_since(begin));
  }
  return best;
}

Verdict hold_trial(Device& device, Queue& queue, const EngineTrial& trial) {
  OutputCopy expected(device, trial.outputs);
  OutputCopy attempt(device, trial.reads_output ? trial.outputs : std::vector<TensorView>{});
  const std::vector<TensorView>& target = trial.reads_output ? attempt.views() : trial.outputs;
  if (trial.reads_output) expected.fill_from(device, queue, trial.outputs);
  trial.contenders[trial.judge].run(expected.views());

  Verdict verdict{trial.judge, {}, {}};
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < trial.contenders.size(); ++i) {
    const Contender& contender = trial.contenders[i];
    if (!contender.eligible) continue;
    try {
      if (trial.reads_output) attempt.fill_from(device, queue, trial.outputs);
      contender.run(target);
      const double error = worst_error(device, queue, target, expected.views());
      if (!(error <= trial.tolerance)) {
        verdict.notes.push_back(fmt::format(
            "engine \"{}\" is not used for {}: its result differs from that of \"{}\" "
            "by {:.2g}, allowed is {:.2g}",
            contender.name, trial.key, trial.contenders[trial.judge].name, error, trial.tolerance));
        continue;
      }
      const double microseconds = microseconds_of(queue, [&] { contender.run(target); });
      verdict.timings.push_back({std::string(contender.name), microseconds});
      if (microseconds >= best) continue;
      best = microseconds;
      verdict.winner = i;
    } catch (const Error& error) {
      if (i == trial.judge) throw;
      verdict.notes.push_back(fmt::format("engine \"{}\" is not used for {}: {}", contender.name,
                                          trial.key, error.what()));
    }
  }
  return verdict;
}

}  // namespace t3d::cuda
