#include "device/cuda/cuda_queue.hpp"

#include <sched.h>

#include <memory>
#include <vector>

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

// An event where the part changes. Events are kept: a step has hundreds. A GPU in trouble says so
// where somebody waits; those who enter may be on their way out already.
class CudaTimer final : public QueueTimer {
 public:
  explicit CudaTimer(CudaQueue& queue) : queue_(queue) {}
  ~CudaTimer() override {
    for (const Change& change : changes_) cudaEventDestroy(change.event);
  }
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  void enter(QueuePart part) noexcept override {
    if (used_ > 0 && part == changes_[used_ - 1].part) return;
    mark(part);
  }
  [[nodiscard]] QueuePart part() const override {
    return used_ > 0 ? changes_[used_ - 1].part : QueuePart::other;
  }
  void end() override {
    mark(QueuePart::other);
    end_ = queue_.mark();
  }
  std::array<double, kQueueParts> seconds() override {
    check(status_, "timing the GPU");
    end_->wait();
    std::array<double, kQueueParts> result{};
    for (std::size_t at = 1; at < used_; ++at) {
      constexpr double kMilli = 1e-3;
      float elapsed = 0;
      check(cudaEventElapsedTime(&elapsed, changes_[at - 1].event, changes_[at].event),
            "reading the GPU's clock");
      result[static_cast<std::size_t>(changes_[at - 1].part)] += kMilli * double(elapsed);
    }
    used_ = 0;
    return result;
  }

 private:
  struct Change {
    cudaEvent_t event = nullptr;
    QueuePart part = QueuePart::other;
  };
  void mark(QueuePart part) noexcept {
    if (status_ != cudaSuccess) return;
    if (used_ == changes_.size()) {
      changes_.emplace_back();
      status_ = cudaEventCreateWithFlags(&changes_.back().event, cudaEventDefault);
      if (status_ != cudaSuccess) return changes_.pop_back();
    }
    changes_[used_].part = part;
    status_ = cudaEventRecord(changes_[used_].event, queue_.stream());
    ++used_;
  }

  CudaQueue& queue_;
  std::vector<Change> changes_;
  std::size_t used_ = 0;
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
