// Which ranks are made slower, from which step on: [emulate] of the input. Tests and demos run the
// real program on equal cores as if its ranks were unequal.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Of a rank that is made slower.
inline constexpr double kMostSlowdown = 1000;

class SlowdownSchedule {
 public:
  SlowdownSchedule() = default;
  /// `factors`: by rank, 1 to kMostSlowdown, empty = none. `changes`: "STEP:RANK:FACTOR" = from
  /// that step on, once for a rank and a step. Throws a config Error that names the wrong entry.
  SlowdownSchedule(const std::vector<double>& factors, const std::vector<std::string>& changes,
                   int ranks);

  /// How many times longer `rank` computes in `step` (steps count from 1).
  [[nodiscard]] double factor(int rank, index_t step) const;
  /// Some rank is slower at some time.
  [[nodiscard]] bool any() const { return !factors_.empty() || !changes_.empty(); }

 private:
  struct Change {
    index_t step = 0;
    int rank = 0;
    double factor = 1;
  };
  [[nodiscard]] static Change parse(const std::string& text, int ranks);
  std::vector<double> factors_;
  std::vector<Change> changes_;  // by ascending step, then rank
};

}  // namespace t3d
