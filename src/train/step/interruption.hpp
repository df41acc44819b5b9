// Breaking off a long evaluation: what ranks wish between two of its passes, agreed by all of them.
// About once a second, so that it costs nothing: rank 0 measures how long the passes take, and says
// with its wishes how many are to follow until the next time.
#pragma once
#include <functional>

#include "comm/communicator.hpp"
#include "core/run_event.hpp"

namespace t3d {

class Interruption {
 public:
  /// `wishes`: this rank's bits of kStopFlags. Passes count from now on.
  Interruption(Communicator& world, std::function<unsigned()> wishes, double seconds = 1);

  /// The ranks have to agree before the next pass; the same on all of them.
  [[nodiscard]] bool is_due() const { return passes_ >= interval_; }
  /// Collective, when all that was begun has ended. What the ranks wish is kept.
  void agree();
  /// A pass was begun, by some of the ranks at least.
  void pass_begun() { ++passes_; }

  /// Those of kStopFlags that were wished for; the same on all ranks.
  [[nodiscard]] unsigned stop() const { return stop_; }
  /// The longest time between two of them, on this rank; until now after the last one.
  [[nodiscard]] double longest_seconds() const;
  [[nodiscard]] index_t agreements() const { return agreements_; }

 private:
  Communicator& world_;
  const std::function<unsigned()> wishes_;
  const double seconds_;
  double last_, longest_ = 0;  // on PhaseClock's clock
  index_t interval_ = 1, passes_ = 0, agreements_ = 0;
  unsigned stop_ = kNoFlag;
};

}  // namespace t3d
