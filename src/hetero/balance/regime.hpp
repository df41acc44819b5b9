// Has a rank's time changed for good, or only for a moment? One tracker per series of times (of a
// rank, or of one class of its work). Pure arithmetic.
//
//   |m - mu| > max(3 x 1.4826 MAD, 3 % of mu)       suspect      m: median of the last 5 steps,
//   the same side in `confirm` evaluations          persistent   mu, MAD: of the 50 before them
//   persistent for 60 s and more than 20 % slower   fail_slow
//   the opposite, confirmed, back near the start    steady again
//
// With a window of 5 and confirm = 3 five steps must be slow: a burst of four changes nothing.
#pragma once
#include <span>
#include <vector>

#include "core/types.hpp"
#include "core/words.hpp"
#include "hetero/balance/sorted_range.hpp"

namespace t3d {

enum class Regime { steady, suspect, persistent, fail_slow };
template <>
struct Words<Regime> {
  static constexpr std::array<std::string_view, 4> all{"steady", "suspect", "persistent",
                                                       "fail-slow"};
};

struct RegimeOptions {
  index_t window = 5;          // steps of the median that is judged
  index_t baseline = 50;       // steps it is compared with
  index_t confirm = 3;         // evaluations that must agree
  double least_change = 0.03;  // smaller ones are noise
  double fail_slow_change = 0.2, fail_slow_seconds = 60;
};

class RegimeTracker {
 public:
  explicit RegimeTracker(const RegimeOptions& options = {});

  /// One step's time, >= 0 and finite; `now_seconds`: any clock that does not go back.
  Regime observe(double seconds, double now_seconds);

  [[nodiscard]] Regime regime() const;
  /// +1: the last steps are slower than those before, -1: faster, 0: neither.
  [[nodiscard]] int side() const { return side_; }
  /// What to reckon with in the next step: the median of all steps of this regime, while suspect
  /// that of the window. 0 before the first step.
  [[nodiscard]] double level() const { return level_; }
  /// Standard error of the level.
  [[nodiscard]] double error() const { return error_; }
  /// level / level before it became slower - 1; 0 in a steady regime.
  [[nodiscard]] double slower_by() const;
  /// Steps that the level is the median of.
  [[nodiscard]] index_t samples() const { return level_samples_; }

 private:
  void judge(double newest, double now_seconds);
  void refresh();
  void accept(double now_seconds);
  void take_level(std::span<const double> samples);

  RegimeOptions options_;
  /// Steps of this regime, as many as are looked at.
  [[nodiscard]] std::span<const double> recent() const {
    return std::span(kept_).last(static_cast<std::size_t>(steps_ - first_));
  }
  std::vector<double> kept_;        // times, the latest last; the oldest ones are of no use
  index_t first_ = 0, steps_ = 0;   // of the whole series: the first in recent(), and all
  SortedRange sorted_;              // of it
  double center_ = 0, spread_ = 0;  // median and MAD of the baseline
  index_t until_refresh_ = 0;       // steps until these two are taken again
  double level_ = 0, error_ = 0;
  index_t level_samples_ = 0;
  int side_ = 0;
  int leaning_ =
      0;  // the side that is being counted; side_ is 0 while the newest step is not on it
  index_t agreed_ = 0;
  bool slow_ = false;
  double healthy_ = 0, slow_since_ = 0, now_ = 0;
};

/// More than a quarter of the ranks (and at least three) changed together: an event of the network
/// or the file system, which no other distribution of work would help. `sides`: of all ranks.
[[nodiscard]] bool correlated(std::span<const int> sides);

}  // namespace t3d
