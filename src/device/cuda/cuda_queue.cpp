#include "device/cuda/cuda_queue.hpp"

#include <sched.h>

#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <vector>

#include "core/tracer.hpp"

namespace t3d::cuda {
namespace {

// Waiting asks and lets the queue's poll run in between: messages must advance, and a communicator
// that has lost a peer must be able to say so.
class CudaMarker final : public Marker {
 public:
  explicit CudaMarker(CudaQueue& queue) : queue_(queue) {
    check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event");
    check(cudaEventRecord(event_, queue.stream()), "recording an event");
  }
  ~CudaMarker() override { cudaEventDestroy(event_); }
  CudaMarker(const CudaMarker&) = delete;
  CudaMarker& operator=(const CudaMarker&) = delete;
  bool reached() override {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return false;
    check(status, "work on the GPU");
    return true;
  }
  void wait() override {
    for (int turn = 0; !reached(); ++turn) {
      queue_.poll();
      if (turn > kSpins) sched_yield();
    }
  }

 private:
  static constexpr int kSpins = 64;
  CudaQueue& queue_;
  cudaEvent_t event_ = nullptr;
};

double milliseconds_between(cudaEvent_t first, cudaEvent_t second) {
  float elapsed = 0;
  check(cudaEventElapsedTime(&elapsed, first, second), "reading the GPU's clock");
  return double(elapsed);
}

// An event where the part changes, or the phase while the queue's clock runs. Events are kept: a
// step has hundreds. A GPU in trouble says so where somebody waits; those who enter may be on their
// way out already.
class CudaTimer final : public QueueTimer {
 public:
  explicit CudaTimer(CudaQueue& queue) : queue_(queue) {}
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  void enter(const QueueState& state) noexcept override {
    if (used_ == 0) by_phase_ = queue_.clock_runs();
    if (used_ == 0 || changes(changes_[used_ - 1].state, state)) mark(state);
  }
  [[nodiscard]] QueueState state() const override {
    return used_ > 0 ? changes_[used_ - 1].state : QueueState();
  }
  void end() override {
    mark({});
    end_ = queue_.mark();
  }
  QueueTimes take() override {
    check(status_, "timing the GPU");
    end_->wait();
    QueueTimes times;
    for (std::size_t at = 1; at < used_; ++at) {
      const Change &from = changes_[at - 1], &to = changes_[at];
      constexpr double kMilli = 1e-3;
      times.seconds[static_cast<std::size_t>(from.state.part)] +=
          kMilli * milliseconds_between(from.event.get(), to.event.get());
      if (by_phase_ && queue_.clock_runs())
        times.intervals.push_back(
            {from.state, queue_.time_of(from.event.get()), queue_.time_of(to.event.get())});
    }
    used_ = 0;
    return times;
  }

 private:
  struct Change {
    EventPtr event;
    QueueState state;
  };
  [[nodiscard]] bool changes(const QueueState& before, const QueueState& now) const {
    return before.part != now.part ||
           (by_phase_ && std::string_view(before.phase) != std::string_view(now.phase));
  }
  void mark(const QueueState& state) noexcept {
    if (status_ != cudaSuccess) return;
    if (used_ == changes_.size()) {
      cudaEvent_t event = nullptr;
      status_ = cudaEventCreateWithFlags(&event, cudaEventDefault);
      if (status_ != cudaSuccess) return;
      changes_.push_back({EventPtr(event), {}});
    }
    changes_[used_].state = state;
    status_ = cudaEventRecord(changes_[used_].event.get(), queue_.stream());
    ++used_;
  }

  CudaQueue& queue_;
  std::vector<Change> changes_;
  std::size_t used_ = 0;
  bool by_phase_ = false;
  cudaError_t status_ = cudaSuccess;
  std::unique_ptr<Marker> end_;
};

ExitCode code_of(cudaError_t status) {
  switch (status) {
    case cudaErrorNoDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorInitializationError:
    case cudaErrorDevicesUnavailable:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorMemoryAllocation: return ExitCode::unavailable;
    default: return ExitCode::internal;
  }
}

}  // namespace

void check(cudaError_t status, std::string_view what) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // otherwise the next launch reports it again
  throw_error(code_of(status), "{} failed: {} ({})", what, cudaGetErrorString(status),
              cudaGetErrorName(status));
}

EventPtr make_timed_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDefault), "creating an event");
  return EventPtr(event);
}

CudaQueue::CudaQueue() {
  check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "creating a stream");
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "creating an event");
}

CudaQueue::~CudaQueue() {
  for (const auto& [shape, graph] : graphs_) cudaGraphExecDestroy(graph);
  cudaEventDestroy(event_);
  cudaStreamDestroy(stream_);
}

void CudaQueue::synchronize() { mark()->wait(); }

std::unique_ptr<QueueTimer> CudaQueue::make_timer() { return std::make_unique<CudaTimer>(*this); }

std::unique_ptr<Marker> CudaQueue::mark() { return std::make_unique<CudaMarker>(*this); }

std::int64_t CudaQueue::time_of(cudaEvent_t event) const {
  constexpr double kNanosecondsPerMilli = 1e6;
  return std::llround(kNanosecondsPerMilli * milliseconds_between(origin_.get(), event));
}

// An event that the host waits for came between the moments before and after. Of several the
// shortest wait counts. What CUDA says of its clock and the rounding of times come on top.
std::optional<DeviceTime> CudaQueue::read_clock() {
  constexpr int kReadings = 16;
  constexpr std::int64_t kResolution = 500;
  synchronize();
  const EventPtr event = make_timed_event();
  DeviceTime best{0, 0, std::numeric_limits<std::int64_t>::max()};
  for (int reading = clock_runs() ? 0 : -1; reading < kReadings; ++reading) {
    if (reading < 0) origin_ = make_timed_event();
    const cudaEvent_t asked = reading < 0 ? origin_.get() : event.get();
    const std::int64_t before = Tracer::now();
    check(cudaEventRecord(asked, stream_), "recording an event");
    cudaError_t status = cudaErrorNotReady;
    while (status == cudaErrorNotReady) status = cudaEventQuery(asked);
    check(status, "work on the GPU");
    const std::int64_t after = Tracer::now(), error = (after - before + 1) / 2 + kResolution;
    if (error < best.error) best = {(before + after) / 2, time_of(asked), error};
  }
  constexpr double kHalfBit = 1.0 / (1 << std::numeric_limits<float>::digits);
  best.error += static_cast<std::int64_t>(kHalfBit * double(best.device)) + 1;
  return best;
}

void CudaQueue::wait_for(cudaStream_t other) {
  check(cudaEventRecord(event_, other), "recording an event");
  check(cudaStreamWaitEvent(stream_, event_, 0), "waiting for an event");
}

// The graph is recorded anew each time and the executable one updated in place: a stale pointer or
// scalar cannot survive, and recording costs the host about what launching would. What is saved is
// the GPU's time between kernels. Relaxed: the memory cache may have to grow meanwhile.
void CudaQueue::record(int shape, const std::function<void()>& body) {
  T3D_CHECK(!recording_, "recordings do not nest");
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "recording a graph");
  recording_ = true;
  cudaGraph_t recorded = nullptr;
  try {
    body();
  } catch (...) {
    recording_ = false;
    cudaStreamEndCapture(stream_, &recorded);
    if (recorded != nullptr) cudaGraphDestroy(recorded);
    cudaGetLastError();
    throw;
  }
  recording_ = false;
  check(cudaStreamEndCapture(stream_, &recorded), "recording a graph");
  const std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, cudaError_t (*)(cudaGraph_t)> graph(
      recorded, cudaGraphDestroy);
  cudaGraphExec_t& executable = graphs_[shape];
  cudaGraphExecUpdateResultInfo info{};
  if (executable != nullptr && cudaGraphExecUpdate(executable, graph.get(), &info) != cudaSuccess) {
    cudaGetLastError();  // other operations than last time: not an error
    check(cudaGraphExecDestroy(executable), "replacing a graph");
    executable = nullptr;
  }
  if (executable == nullptr)
    check(cudaGraphInstantiate(&executable, graph.get(), 0), "instantiating a graph");
  check(cudaGraphLaunch(executable, stream_), "launching a graph");
}

}  // namespace t3d::cuda
