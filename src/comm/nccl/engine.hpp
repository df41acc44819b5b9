// What all NCCL groups of one rank share: the books, the verbs that are under way on the GPU, and
// the watch over them. NCCL advances by itself; what the host does here is to look. In a trace
// (core/tracer.hpp) a verb stands with the times of its stream.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "comm/cost.hpp"
#include "comm/idle_clock.hpp"
#include "comm/nccl/handle.hpp"
#include "comm/nccl/nccl.hpp"
#include "comm/trace.hpp"
#include "core/tracer.hpp"
#include "device/cuda/cuda_queue.hpp"

namespace t3d::nccl {

/// A verb in a trace; `begun`, where it is not null, came before it on its stream.
struct TracedVerb {
  TraceMark mark;
  std::shared_ptr<CUevent_st> begun;
};

/// One verb under way: `event` comes after it on its stream.
struct Flight {
  Verb verb = Verb::barrier;
  std::string axis;
  index_t bytes = 0;   // that this rank sends
  index_t number = 0;  // in the trace
  std::shared_ptr<CUevent_st> event;
  TracedVerb traced;
};
using FlightPtr = std::shared_ptr<const Flight>;

class Engine {
 public:
  Engine(Communicator& host_world, Device& device, Queue& queue, NcclOptions options);

  [[nodiscard]] Device& device() { return device_; }
  [[nodiscard]] cuda::CudaQueue& compute() { return compute_; }
  [[nodiscard]] const NcclOptions& options() const { return options_; }
  [[nodiscard]] Ledger& ledger() { return host_world_.ledger(); }
  [[nodiscard]] const std::map<std::string, double>& wait_seconds();
  [[nodiscard]] double wait_cpu_seconds() const { return host_world_.wait_cpu_seconds(); }
  void set_slowdown(double factor) { host_world_.set_slowdown(factor); }
  void set_watchdog(double seconds);
  void set_wait_limit(const std::string& axis, double seconds);

  /// Handles that a failure must abort.
  void add(Handle& handle) { handles_.push_back(&handle); }
  void remove(Handle& handle) { std::erase(handles_, &handle); }

  /// Throws where this rank's world has failed.
  void check() const;
  [[nodiscard]] bool recording() const;
  /// Counts a verb that is about to be submitted; its number.
  [[nodiscard]] index_t begin(Verb verb, const std::string& axis, const Traffic& traffic);
  /// It comes next on `stream`; not of a recording, whose events have no times.
  [[nodiscard]] TracedVerb trace(const TraceMark& mark, cudaStream_t stream);
  /// All of it is on `stream`.
  [[nodiscard]] FlightPtr submitted(Verb verb, const std::string& axis, index_t bytes,
                                    index_t number, cudaStream_t stream,
                                    const TracedVerb& traced = {});
  [[nodiscard]] bool landed(const Flight& flight) const;
  /// Blocks, polling, until it has landed.
  void wait(const Flight& flight);
  /// Blocks until `stream` is empty; what is seen is named after `verb`.
  void drain(Verb verb, const std::string& axis, cudaStream_t stream);
  /// Looks after everything under way. A failure is kept for the next wait or verb.
  void progress() noexcept;

 private:
  using Clock = IdleClock::Clock;
  class Events;

  [[nodiscard]] double limit_of(const Flight& flight) const;
  void look();
  void retire();
  void tell_times(const Flight& flight) const;
  void has_progressed();
  [[noreturn]] void give_up(const Flight& flight, double seconds);
  void fail(ExitCode code, std::string text) noexcept;

  Communicator& host_world_;
  Device& device_;
  cuda::CudaQueue& compute_;
  NcclOptions options_;
  std::shared_ptr<Events> events_, timed_events_;
  std::vector<Handle*> handles_;
  Trace trace_;
  std::map<std::string, double> own_wait_seconds_, wait_seconds_;
  double watchdog_seconds_ = 0;
  std::map<std::string, double> limit_of_axis_;
  std::deque<FlightPtr> flights_;  // in the order of submission
  IdleClock idle_{Clock::now()};   // since the oldest one is under way
  index_t progress_made_ = 0;
  FlightPtr recorded_;   // the last verb of a recording that has not been seen to run
  std::string failure_;  // empty while all is well
  ExitCode failure_code_ = ExitCode::peer_lost;
};

}  // namespace t3d::nccl
