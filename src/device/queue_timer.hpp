// QueueTimer: the seconds of a queue, by what it was doing, as its device counts them. The device
// works behind the host, whose clocks say nothing of it.
#pragma once
#include <array>
#include <cstddef>

namespace t3d {

/// What a queue does. `waiting`: for messages of others.
enum class QueuePart : int { other, matmul, attention, whole, waiting, count_ };
inline constexpr auto kQueueParts = static_cast<std::size_t>(QueuePart::count_);

class QueueTimer {
 public:
  virtual ~QueueTimer() = default;
  /// What is queued from now on belongs to `part`. Not while the queue records. Must not throw.
  virtual void enter(QueuePart part) = 0;
  [[nodiscard]] virtual QueuePart part() const = 0;
  virtual void end() = 0;
  /// Seconds by part from the first enter() to end(); waits until the device has come so far. The
  /// timer is as new then. Throws where the device has failed.
  [[nodiscard]] virtual std::array<double, kQueueParts> seconds() = 0;
};

}  // namespace t3d
