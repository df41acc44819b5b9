// Streams, events and graphs. Nothing runs when it is queued: a stream runs up to a point when
// somebody waits for that point, and then only what the point depends on, so that a missing
// dependency shows as old (poisoned) data. Errors of a kernel appear where somebody waits.
//
// A stream belongs to the host thread that uses it; only tables of memory are shared.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cuda_runtime.h"
#include "memory.hpp"

namespace {

using t3d::emulation::MemoryTable;

struct Operation {
  const char* what;
  std::function<bool()> advance;  // true when it has finished
};
using Operations = std::vector<Operation>;

thread_local cudaError_t last_error = cudaSuccess;
cudaError_t note(cudaError_t error) { return last_error = error; }

double now_milliseconds() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

struct CUgraph_st {
  Operations operations;
};
struct CUgraphExec_st {
  std::shared_ptr<const Operations> operations;
};

struct Capture {
  std::unique_ptr<CUgraph_st> graph = std::make_unique<CUgraph_st>();
  std::map<CUstream_st*, std::size_t> unjoined;  // branch -> operations that the origin must await
  bool invalid = false;
};

struct CUstream_st {
  std::deque<Operation> waiting;
  std::size_t queued = 0, done = 0;
  bool running = false;
  std::shared_ptr<Capture> capture;
  bool origin = false;
  cudaError_t error = cudaSuccess;    // sticky, as after a faulting kernel
  std::shared_ptr<CUstream_st> self;  // until it is destroyed; events may hold it longer

  /// As far as it goes without waiting for other threads; whether that is far enough.
  bool run_until(std::size_t point) {
    if (running) return done >= point;  // a dependency in a circle cannot be made with events
    running = true;
    while (done < point && !waiting.empty()) {
      const Operation& operation = waiting.front();
      try {
        if (!operation.advance()) break;
      } catch (const std::exception& exception) {
        std::fprintf(stderr, "emulated GPU: %s: %s\n", operation.what, exception.what());
        error = cudaErrorLaunchFailure;
      }
      waiting.pop_front();
      ++done;
    }
    running = false;
    return done >= point;
  }
  /// Where it does not go on by itself, a peer may be waiting for what other streams hold.
  void finish(std::size_t point) {
    while (!run_until(point)) {
      t3d::emulation::advance_streams();
      std::this_thread::yield();
    }
  }
};

struct CUevent_st {
  std::shared_ptr<CUstream_st> stream;
  std::size_t point = 0;
  std::shared_ptr<double> time = std::make_shared<double>(0);
  std::shared_ptr<Capture> capture;
  int queries = 0;
  bool timed = false;
};

namespace t3d::emulation {

cudaError_t enqueue(cudaStream_t stream, const char* what, std::function<void()> run) {
  return enqueue_polled(stream, what, [run = std::move(run)] {
    run();
    return true;
  });
}

cudaError_t enqueue_polled(cudaStream_t stream, const char* what, std::function<bool()> advance) {
  if (stream == nullptr) {
    std::fprintf(stderr, "emulated GPU: %s on the default stream\n", what);
    return note(cudaErrorInvalidResourceHandle);
  }
  if (stream->capture) {
    stream->capture->graph->operations.push_back({what, std::move(advance)});
    if (!stream->origin) ++stream->capture->unjoined[stream];
    return cudaSuccess;
  }
  stream->waiting.push_back({what, std::move(advance)});
  ++stream->queued;
  return cudaSuccess;
}

}  // namespace t3d::emulation

using t3d::emulation::enqueue;
using t3d::emulation::enqueue_polled;

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  auto made = std::make_shared<CUstream_st>();
  *stream = made.get();
  made->self = std::move(made);
  t3d::emulation::streams_of_thread().insert(*stream);
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) {
  return cudaStreamCreateWithFlags(stream, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
  stream->finish(stream->queued);
  t3d::emulation::streams_of_thread().erase(stream);
  stream->self.reset();
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (stream == nullptr) return note(cudaErrorInvalidResourceHandle);
  if (stream->capture) {
    stream->capture->invalid = true;
    return note(cudaErrorStreamCaptureUnsupported);
  }
  stream->finish(stream->queued);
  return stream->error == cudaSuccess ? cudaSuccess : note(stream->error);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  if (stream->done < stream->queued) {
    if (!stream->run_until(stream->done + 1)) t3d::emulation::advance_streams();  // time passes
    if (stream->done < stream->queued) return cudaErrorNotReady;
  }
  return stream->error == cudaSuccess ? cudaSuccess : note(stream->error);
}
cudaError_t cudaDeviceSynchronize() {
  for (CUstream_st* stream : t3d::emulation::streams_of_thread())
    if (const cudaError_t status = cudaStreamSynchronize(stream); status != cudaSuccess)
      return status;
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return enqueue(stream, "a host function", [function, data] { function(data); });
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  *event = new CUevent_st();  // NOLINT
  (*event)->timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete event;  // NOLINT
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  event->capture = stream->capture;
  event->stream = stream->self;
  event->queries = 0;
  if (stream->capture) {
    event->point = stream->origin ? 0 : stream->capture->unjoined[stream];
    return cudaSuccess;
  }
  event->time = std::make_shared<double>(0);
  const cudaError_t status =
      enqueue(stream, "an event", [time = event->time] { *time = now_milliseconds(); });
  event->point = stream->queued;
  // A device that runs only when somebody waits has no time of its own.
  if (event->timed && std::getenv("T3D_EMULATED_TIME") != nullptr)
    (void)stream->run_until(event->point);
  return status;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (event->stream == nullptr) return cudaSuccess;
  if (event->capture) {
    if (!stream->capture) {  // the stream joins the recording
      stream->capture = event->capture;
      stream->origin = false;
      stream->capture->unjoined[stream] = 0;
    } else if (!event->stream->origin) {
      auto& open = stream->capture->unjoined[event->stream.get()];
      if (stream->origin) open -= std::min(open, event->point);
    }
    return cudaSuccess;
  }
  if (stream->capture) return cudaSuccess;  // what came before the recording is done first
  return enqueue_polled(
      stream, "waiting for an event",
      [other = event->stream, point = event->point] { return other->run_until(point); });
}
// "Not yet" first, so that nobody relies on a quick answer; then the work is done.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (event->capture) return note(cudaErrorCapturedEvent);
  if (event->stream == nullptr || event->stream->done >= event->point) return cudaSuccess;
  if (++event->queries <= 2) return cudaErrorNotReady;
  if (!event->stream->run_until(event->point)) {
    t3d::emulation::advance_streams();
    return cudaErrorNotReady;
  }
  return cudaEventSynchronize(event);
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (event->capture) return note(cudaErrorCapturedEvent);
  if (event->stream == nullptr) return cudaSuccess;
  event->stream->finish(event->point);
  return event->stream->error == cudaSuccess ? cudaSuccess : note(event->stream->error);
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  *milliseconds = static_cast<float>(*end->time - *start->time);
  return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (stream->capture) return note(cudaErrorInvalidValue);
  stream->capture = std::make_shared<Capture>();
  stream->origin = true;
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  const std::shared_ptr<Capture> capture = stream->capture;
  if (!capture || !stream->origin) return note(cudaErrorInvalidValue);
  bool joined = true;
  for (const auto& [branch, open] : capture->unjoined) {
    joined = joined && open == 0;
    branch->capture.reset();
  }
  stream->capture.reset();
  if (capture->invalid) return note(cudaErrorStreamCaptureInvalidated);
  if (!joined) return note(cudaErrorStreamCaptureUnjoined);
  *graph = capture->graph.release();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph,
                                 unsigned long long) {
  *executable =
      new CUgraphExec_st{std::make_shared<const Operations>(graph->operations)};  // NOLINT
  return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo*) {
  if (executable->operations->size() != graph->operations.size())
    return note(cudaErrorGraphExecUpdateFailure);
  executable->operations = std::make_shared<const Operations>(graph->operations);
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  return enqueue_polled(stream, "a graph",
                        [operations = executable->operations, at = std::size_t{0}]() mutable {
                          for (; at < operations->size(); ++at)
                            if (!(*operations)[at].advance()) return false;
                          return true;
                        });
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  delete graph;  // NOLINT
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) {
  delete executable;  // NOLINT
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return std::exchange(last_error, cudaSuccess); }
cudaError_t cudaPeekAtLastError() { return last_error; }

namespace t3d::emulation {

std::set<CUstream_st*>& streams_of_thread() {
  static thread_local std::set<CUstream_st*> own;
  return own;
}
cudaError_t note_error(cudaError_t error) { return note(error); }
void advance_streams() {
  for (CUstream_st* stream : streams_of_thread()) stream->run_until(stream->done + 1);
}
bool capturing(cudaStream_t stream) { return stream != nullptr && stream->capture != nullptr; }

}  // namespace t3d::emulation
