#include "comm/nccl/engine.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <utility>

#include "comm/busy.hpp"

namespace t3d::nccl {
namespace {

// Polls before the core is offered to others.
constexpr int kSpins = 64;

cuda::CudaQueue& cuda_queue(Queue& queue) {
  auto* found = dynamic_cast<cuda::CudaQueue*>(&queue);
  T3D_CHECK(found != nullptr, "NCCL needs a CUDA queue");
  return *found;
}

}  // namespace

// Events are made once and used again: one per verb in flight, two where it is traced.
class Engine::Events : public std::enable_shared_from_this<Events> {
 public:
  explicit Events(unsigned flags) : flags_(flags) {}
  Events(const Events&) = delete;
  Events& operator=(const Events&) = delete;
  ~Events() {
    for (cudaEvent_t event : free_) cudaEventDestroy(event);
  }
  std::shared_ptr<CUevent_st> take() {
    cudaEvent_t event = nullptr;
    if (free_.empty()) {
      cuda::check(cudaEventCreateWithFlags(&event, flags_), "creating an event");
    } else {
      event = free_.back();
      free_.pop_back();
    }
    return {event, [pool = shared_from_this()](cudaEvent_t used) { pool->free_.push_back(used); }};
  }

 private:
  unsigned flags_;
  std::vector<cudaEvent_t> free_;
};

Engine::Engine(Communicator& host_world, Device& device, Queue& queue, NcclOptions options)
    : host_world_(host_world),
      device_(device),
      compute_(cuda_queue(queue)),
      options_(std::move(options)),
      events_(std::make_shared<Events>(cudaEventDisableTiming)),
      timed_events_(std::make_shared<Events>(cudaEventDefault)) {}

const std::map<std::string, double>& Engine::wait_seconds() {
  wait_seconds_ = host_world_.wait_seconds();
  for (const auto& [axis, seconds] : own_wait_seconds_) wait_seconds_[axis] += seconds;
  return wait_seconds_;
}

void Engine::set_watchdog(double seconds) {
  watchdog_seconds_ = seconds;
  host_world_.set_watchdog(seconds);
}

void Engine::set_wait_limit(const std::string& axis, double seconds) {
  limit_of_axis_[axis] = seconds;
  host_world_.set_wait_limit(axis, seconds);
}

double Engine::limit_of(const Flight& flight) const {
  const auto found = limit_of_axis_.find(flight.axis);
  return found == limit_of_axis_.end() ? watchdog_seconds_ : found->second;
}

void Engine::check() const {
  if (!failure_.empty()) throw Error(failure_code_, failure_);
}

index_t Engine::begin(Verb verb, const std::string& axis, const Traffic& traffic) {
  check();
  ledger().count(verb, axis, traffic.bytes, traffic.messages);
  return trace_.add(verb, axis, traffic.bytes);
}

TracedVerb Engine::trace(const TraceMark& mark, cudaStream_t stream) {
  TracedVerb traced{mark, timed_events_->take()};
  cuda::check(cudaEventRecord(traced.begun.get(), stream), "recording an event");
  return traced;
}

FlightPtr Engine::submitted(Verb verb, const std::string& axis, index_t bytes, index_t number,
                            cudaStream_t stream, const TracedVerb& traced) {
  Events& events = traced.begun != nullptr ? *timed_events_ : *events_;
  FlightPtr flight =
      std::make_shared<const Flight>(Flight{verb, axis, bytes, number, events.take(), traced});
  cuda::check(cudaEventRecord(flight->event.get(), stream), "recording an event");
  if (recording()) {  // nobody can ask for an event of a graph
    recorded_ = flight;
    return flight;
  }
  retire();
  if (flights_.empty()) has_progressed();
  flights_.push_back(flight);
  return flight;
}

bool Engine::landed(const Flight& flight) const {
  const cudaError_t status = cudaEventQuery(flight.event.get());
  if (status == cudaErrorNotReady) return false;
  cuda::check(status, "communication on the GPU");
  return true;
}

void Engine::wait(const Flight& flight) {
  const auto start = Clock::now();
  const auto seconds = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  // What lands on this GPU, in any group, is progress.
  IdleClock idle(start);
  index_t seen = progress_made_;
  for (int turn = 0;; ++turn) {
    check();
    if (landed(flight)) break;
    progress();
    if (turn < kSpins) continue;
    sched_yield();
    const auto now = Clock::now();
    if (progress_made_ != seen) idle.progress(now);
    seen = progress_made_;
    (void)idle.look(now);
    if (others_are_busy()) idle.excuse(busy_limit());
    if (const double limit = limit_of(flight); limit > 0 && idle.idle() > limit)
      give_up(flight, idle.whole());
  }
  check();  // what an abort has ended looks landed too
  own_wait_seconds_[flight.axis] += seconds();
}

void Engine::drain(Verb verb, const std::string& axis, cudaStream_t stream) {
  check();
  wait(*submitted(verb, axis, 0, trace_.add(verb, axis, 0), stream));
}

void Engine::progress() noexcept {
  host_world_.progress();
  if (!failure_.empty()) return;
  try {
    look();
  } catch (const Error& error) {
    if (failure_.empty()) fail(error.code(), error.what());
  } catch (const std::exception& error) {
    fail(ExitCode::internal, error.what());
  }
}

bool Engine::recording() const {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cuda::check(cudaStreamIsCapturing(compute_.stream(), &status), "asking for a recording");
  return status != cudaStreamCaptureStatusNone;
}

void Engine::look() {
  for (const Handle* handle : handles_)
    if (const ncclResult_t state = handle->asynchronous_error(); state != ncclSuccess)
      fail(code_of(state), fmt::format("rank {}: NCCL lost a peer: {}: {}. Operations of this "
                                       "rank: {}",
                                       host_world_.rank(), ncclGetErrorString(state),
                                       ncclGetLastError(handle->get()), trace_.text()));
  check();
  if (recording()) return;
  if (recorded_ != nullptr) {
    // The graph has been launched: from here on it can be watched like a single verb.
    const FlightPtr last = std::exchange(recorded_, nullptr);
    (void)submitted(last->verb, last->axis, last->bytes, last->number, compute_.stream());
  }
  retire();
  if (flights_.empty()) return;
  const double limit = limit_of(*flights_.front());
  (void)idle_.look(Clock::now());
  if (others_are_busy()) idle_.excuse(busy_limit());
  if (limit > 0 && idle_.idle() > limit) give_up(*flights_.front(), idle_.whole());
}

void Engine::retire() {
  while (!flights_.empty() && landed(*flights_.front())) {
    trace_.finish(flights_.front()->number);
    tell_times(*flights_.front());
    flights_.pop_front();
    has_progressed();
  }
}

void Engine::tell_times(const Flight& flight) const {
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr || flight.traced.begun == nullptr || !compute_.clock_runs()) return;
  tracer->landed(flight.traced.mark, compute_.time_of(flight.traced.begun.get()),
                 compute_.time_of(flight.event.get()));
}

void Engine::has_progressed() {
  idle_.progress(Clock::now());
  ++progress_made_;
}

void Engine::give_up(const Flight& flight, double seconds) {
  fail(ExitCode::peer_lost,
       fmt::format("rank {} has waited {:.1f} s for {} on axis {} (operation #{}, {} bytes to "
                   "send) on its GPU; a peer on that axis is missing. Operations of this "
                   "rank: {}",
                   host_world_.rank(), seconds, name_of(flight.verb), flight.axis, flight.number,
                   flight.bytes, trace_.text()));
  throw Error(failure_code_, failure_);
}

void Engine::fail(ExitCode code, std::string text) noexcept {
  failure_ = std::move(text);
  failure_code_ = code;
  for (Handle* handle : handles_) handle->abort();
  flights_.clear();
  recorded_.reset();
}

}  // namespace t3d::nccl
