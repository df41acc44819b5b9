// QueueTimer: the seconds of a queue, by what it was doing, as its device counts them. The device
// works behind the host, whose clocks say nothing of it.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace t3d {

/// What a queue does. `waiting`: for messages of others.
enum class QueuePart : int { other, matmul, attention, whole, waiting, count_ };
inline constexpr auto kQueueParts = static_cast<std::size_t>(QueuePart::count_);

struct QueueState {
  QueuePart part = QueuePart::other;
  const char* phase = "";  // of the host's PhaseClock; lives as long as the program
};

/// From `start` to `end`, nanoseconds of the device's clock.
struct QueueInterval {
  QueueState state;
  std::int64_t start = 0, end = 0;
};

struct QueueTimes {
  std::array<double, kQueueParts> seconds{};
  /// One after the other, and all of them; none where the queue's clock did not run meanwhile
  /// (Queue::read_clock).
  std::vector<QueueInterval> intervals;
};

class QueueTimer {
 public:
  virtual ~QueueTimer() = default;
  /// What is queued from now on belongs to `state`. Phases of one part are told apart while the
  /// queue's clock runs. Not while the queue records. Must not throw.
  virtual void enter(const QueueState& state) = 0;
  [[nodiscard]] virtual QueueState state() const = 0;
  virtual void end() = 0;
  /// From the first enter() to end(); waits until the device has come so far. The timer is as new
  /// then. Throws where the device has failed.
  [[nodiscard]] virtual QueueTimes take() = 0;
};

}  // namespace t3d
