// Queue: ordered execution on a device (a stream on a GPU; inline execution on a CPU).
// A CPU queue runs each operation at once in the caller's thread. Long operations call poll()
// between slices of work, so that messages in flight advance: Open MPI has no progress thread.
#pragma once
#include <functional>
#include <utility>

namespace t3d {

class Queue {
 public:
  virtual ~Queue() = default;

  /// Blocks the host until all that was queued is done. Not for use inside a step.
  virtual void synchronize() {}

  /// What to do in pauses of long host-side work; must be cheap and must not throw.
  void set_poll(std::function<void()> poll) { poll_ = std::move(poll); }
  void poll() const {
    if (poll_) poll_();
  }

 private:
  std::function<void()> poll_;
};

}  // namespace t3d
