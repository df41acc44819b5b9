// Queue: ordered execution on a device (a stream on a GPU; inline execution on a CPU).
// A CPU queue runs each operation at once in the caller's thread. Long operations call poll()
// between slices of work, so that messages in flight advance: Open MPI has no progress thread.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "device/queue_timer.hpp"

namespace t3d {

/// A place in a queue that the host can ask about.
class Marker {
 public:
  virtual ~Marker() = default;
  /// Whether everything before it is done; never blocks.
  [[nodiscard]] virtual bool reached() { return true; }
  virtual void wait() {}
};

/// The clock of a device beside the steady clock of its host, in nanoseconds.
struct DeviceTime {
  std::int64_t host = 0, device = 0;
  std::int64_t error = 0;  // of `host`, at most
};

class Queue {
 public:
  virtual ~Queue() = default;

  /// Blocks the host until all that was queued is done. Not for use inside a step.
  virtual void synchronize() {}
  /// Marks the end of what is queued now.
  [[nodiscard]] virtual std::unique_ptr<Marker> mark() { return std::make_unique<Marker>(); }

  /// Runs `body`, whose operations all go to this queue or to queues that it waits for. A GPU queue
  /// may record them and submit them as one graph; a CPU queue just runs them. Bodies that do the
  /// same operations on other data share a `shape`. Not nested.
  virtual void record(int shape, const std::function<void()>& body) {
    (void)shape;
    body();
  }

  /// A timer of this queue; null where the host's clocks are the device's.
  [[nodiscard]] virtual std::unique_ptr<QueueTimer> make_timer() { return nullptr; }
  /// The timer in use, which outlives its use; null = none. Whoever waits for messages tells it
  /// (Work::wait).
  void set_timer(QueueTimer* timer) { timer_ = timer; }
  [[nodiscard]] QueueTimer* timer() const { return timer_; }

  /// Reads the device's clock, after all that is queued now; blocks until then. It begins at 0 with
  /// the first reading and runs until stop_clock(). None where the host's clocks are the device's.
  [[nodiscard]] virtual std::optional<DeviceTime> read_clock() { return std::nullopt; }
  virtual void stop_clock() {}

  /// What to do in pauses of long host-side work; must be cheap and must not throw.
  void set_poll(std::function<void()> poll) { poll_ = std::move(poll); }
  void poll() const {
    if (poll_) poll_();
  }

 private:
  std::function<void()> poll_;
  QueueTimer* timer_ = nullptr;
};

}  // namespace t3d
