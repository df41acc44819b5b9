// Tracer: when this rank did what, for a trace of all ranks (run/tracing.hpp). The places
// that are traced ask for the tracer of their thread, which is null unless debug.trace asks for
// this step: that branch is what tracing costs when it is off.
//
// Spans go into memory that was taken and touched before: nothing is allocated, locked or written
// while steps are traced, but for the name of a group that sends for the first time. One thread
// writes: the rank's own.
//
// What a device does behind the host is noted in the time of its own clock, and put beside the
// host's when the trace ends (device/queue.hpp, DeviceTime).
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct TraceSpan {
  enum class Kind : std::uint8_t {
    step,
    phase,
    wait,
    collective,
    writer,
    // By the device's clock:
    stream_step,   // a step on the compute stream
    stream,        // a phase there
    communication  // a collective on a stream of its own
  };
  Kind kind = Kind::phase;
  std::int32_t group = -1;     // of what has bytes: position in the tracer's groups
  std::int64_t start = 0;      // nanoseconds of the steady clock of this rank's host, or its device
  std::int64_t end = 0;        // 0: still under way
  std::int64_t step = 0;       // in whose books its bytes stand; on the compute stream: its own
  std::int64_t bytes = 0;      // that this rank sends
  std::int64_t sequence = 0;   // of the collectives of its group since the trace began
  const char* name = nullptr;  // lives as long as the program

  [[nodiscard]] bool on_device() const { return kind >= Kind::stream_step; }
};

/// Ranks that a collective runs over.
struct TraceGroup {
  std::string axis;
  std::vector<int> ranks;  // of the world
  std::int64_t collectives = 0;
};

/// A span that has begun; it says nothing to another tracer than the one that made it.
struct TraceMark {
  std::int64_t trace = 0;    // Tracer::id()
  std::int64_t number = -1;  // -1: there was no room
};

/// A group's place in the tracer that knows it.
struct TracedGroup {
  std::int64_t trace = 0;  // Tracer::id()
  int number = -1;         // in that one
};

class Tracer {
 public:
  explicit Tracer(std::size_t capacity) : spans_(capacity) {}

  /// Of this thread, which is this rank; null: nothing is traced.
  [[nodiscard]] static Tracer* current() { return current_; }
  static void set_current(Tracer* tracer) { current_ = tracer; }
  /// Not that of another tracer of this process, and not 0.
  [[nodiscard]] std::int64_t id() const { return id_; }

  [[nodiscard]] static std::int64_t now() { return nanoseconds(std::chrono::steady_clock::now()); }
  [[nodiscard]] static std::int64_t nanoseconds(std::chrono::steady_clock::time_point time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
  }

  /// What follows belongs to this step.
  void set_step(index_t step) { step_ = step; }
  void add(TraceSpan::Kind kind, const char* name, std::int64_t start, std::int64_t end) {
    put({kind, -1, start, end, step_, 0, 0, name});
  }
  /// Of the device: what it did for `step`, by its clock.
  void add_on_device(TraceSpan::Kind kind, const char* name, std::int64_t start, std::int64_t end,
                     index_t step) {
    put({kind, -1, start, end, step, 0, 0, name});
  }
  [[nodiscard]] int add_group(const std::string& axis, const std::vector<int>& ranks) {
    groups_.push_back({axis, ranks, 0});
    return static_cast<int>(groups_.size()) - 1;
  }
  /// Of a group that may be new here; then it gets its number.
  [[nodiscard]] int number_of(TracedGroup& group, const std::string& axis,
                              const std::vector<int>& ranks) {
    if (group.trace != id_) group = {id_, add_group(axis, ranks)};
    return group.number;
  }
  /// A collective begins; its number here, or -1 where there is no room.
  [[nodiscard]] TraceMark begin(int group, const char* verb, index_t bytes) {
    return begin(TraceSpan::Kind::collective, group, verb, bytes, now());
  }
  /// The same on a stream of its own; landed() tells when it was there.
  [[nodiscard]] TraceMark submit(int group, const char* verb, index_t bytes) {
    return begin(TraceSpan::Kind::communication, group, verb, bytes, 0);
  }
  void landed(const TraceMark& mark, std::int64_t start, std::int64_t end) {
    if (mark.trace != id_ || mark.number < 0) return;
    TraceSpan& span = spans_[static_cast<std::size_t>(mark.number)];
    span.start = start;
    span.end = end;
  }
  /// Anything that has begun.
  void end(const TraceMark& mark) {
    if (mark.trace == id_ && mark.number >= 0)
      spans_[static_cast<std::size_t>(mark.number)].end = now();
  }
  /// A wait for a collective ends.
  void waited(const TraceMark& mark, std::int64_t start) {
    if (mark.trace != id_ || mark.number < 0) return;
    TraceSpan span = spans_[static_cast<std::size_t>(mark.number)];
    span.kind = TraceSpan::Kind::wait;
    span.start = start;
    span.end = now();
    put(span);
  }
  [[nodiscard]] TraceMark begin_writer() {
    return {id_, put({TraceSpan::Kind::writer, -1, now(), 0, step_, 0, 0, "checkpoint writer"})};
  }
  /// For PhaseClock's listener: this phase begins or goes on; "" = none. A second belongs to one
  /// phase only, as in the log.
  void enter(const char* phase) {
    const std::int64_t time = now();
    if (phase_ != nullptr) add(TraceSpan::Kind::phase, phase_, phase_start_, time);
    phase_ = *phase != '\0' ? phase : nullptr;
    phase_start_ = time;
  }

  [[nodiscard]] const std::vector<TraceGroup>& groups() const { return groups_; }
  /// Those that were taken.
  [[nodiscard]] std::vector<TraceSpan> take_spans() {
    spans_.resize(static_cast<std::size_t>(used_));
    return std::move(spans_);
  }
  /// How many there was no room for.
  [[nodiscard]] std::int64_t lost() const { return lost_; }

 private:
  TraceMark begin(TraceSpan::Kind kind, int group, const char* verb, index_t bytes,
                  std::int64_t start) {
    const std::int64_t sequence = groups_[static_cast<std::size_t>(group)].collectives++;
    return {id_, put({kind, group, start, 0, step_, bytes, sequence, verb})};
  }
  std::int64_t put(const TraceSpan& span) {
    if (used_ == std::ssize(spans_)) {
      ++lost_;
      return -1;
    }
    spans_[static_cast<std::size_t>(used_)] = span;
    return used_++;
  }

  std::vector<TraceSpan> spans_;
  std::vector<TraceGroup> groups_;
  std::int64_t used_ = 0, lost_ = 0;
  index_t step_ = 0;
  const char* phase_ = nullptr;  // that goes on
  std::int64_t phase_start_ = 0;
  static inline thread_local Tracer* current_ = nullptr;
  static inline std::atomic<std::int64_t> made_ = 0;
  std::int64_t id_ = ++made_;
};

}  // namespace t3d
