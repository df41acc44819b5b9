// What every rank's time went to over a whole run, in bounded memory: what the plot (rank_plot.hpp)
// and the ranks of the end table (end_table.hpp) are made from.
//
// Steps become points. When there are too many of them, two neighbours become one with their mean,
// again and again, so that a long run keeps its whole course. Kept are the spread over the ranks
// (kMostPoints) and every rank's own figures: as many points for up to kMostRanks ranks, fewer for
// more, down to 6, so that 600 x 64 figures are the bound up to 6,400 ranks, and 6 per rank beyond.
#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/run_event.hpp"

namespace t3d {

/// Seconds; means over the steps that the point stands for.
struct SpreadPoint {
  index_t steps = 1;  // gathered, that this point stands for
  double step = 0;    // their mean number
  double seconds = 0;
  double least = 0, median = 0, most = 0;  // own time, over the ranks that did anything
  int slowest = 0;                         // the rank of the longest own time among these steps
};

/// What a rank had to do in a step, by the parts of RankTimes, in any unit that is the same for all
/// ranks: flops, bytes.
struct RankLoad {
  double matmul = 0, attention = 0, other = 0;
};

/// Likewise, for each rank.
struct RankPoint {
  index_t steps = 1;
  double step = 0;
  double seconds = 0;
  std::vector<RankTimes> ranks;  // by rank of the job
  std::vector<RankLoad> work;    // likewise; empty = not known
};

void merge(SpreadPoint& into, const SpreadPoint& next);
void merge(RankPoint& into, const RankPoint& next);

/// At most `most` points (an even number); all but the last stand for equally many steps.
template <typename Point>
class ThinnedCourse {
 public:
  explicit ThinnedCourse(std::size_t most) : most_(most) {}
  void add(Point point) {
    if (!points_.empty() && points_.back().steps < stride_) {
      merge(points_.back(), point);
      return;
    }
    if (points_.size() == most_) halve();
    points_.push_back(std::move(point));
  }
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }

 private:
  void halve() {
    for (std::size_t at = 0; at < points_.size() / 2; ++at) {
      merge(points_[2 * at], points_[2 * at + 1]);
      if (at > 0) points_[at] = std::move(points_[2 * at]);
    }
    points_.erase(points_.begin() + static_cast<std::ptrdiff_t>(points_.size() / 2), points_.end());
    stride_ *= 2;
  }

  std::size_t most_;
  index_t stride_ = 1;
  std::vector<Point> points_;
};

struct PlanMark {
  index_t step = 0;
  std::string text;
};

class RankHistory {
 public:
  static constexpr std::size_t kMostPoints = 600, kMostRanks = 64, kMostMarks = 100;

  /// `times` and `step_seconds` are of the same step; steps come in their order. No times: nothing
  /// is added. Always as many ranks as at the first call. `work`: of that step; empty = not known,
  /// and that in all calls.
  void add(index_t step, double step_seconds, const std::vector<RankTimes>& times,
           const std::vector<RankLoad>& work = {});

  /// The plan changed after this step. The first and the last kMostMarks / 2 are kept.
  void mark(index_t step, const std::string& text);

  /// Some rank is made slower on purpose; the plot says so.
  void set_emulated() { emulated_ = true; }

  [[nodiscard]] std::size_t ranks() const { return ranks_; }  // 0 before the first step
  [[nodiscard]] index_t first_step() const { return first_step_; }
  [[nodiscard]] index_t last_step() const { return last_step_; }
  [[nodiscard]] bool emulated() const { return emulated_; }
  [[nodiscard]] const std::vector<SpreadPoint>& spread() const { return spread_.points(); }
  [[nodiscard]] const std::vector<RankPoint>& by_rank() const { return by_rank_.points(); }
  [[nodiscard]] const std::vector<PlanMark>& marks() const { return marks_; }
  [[nodiscard]] index_t marks_dropped() const { return marks_dropped_; }

 private:
  std::size_t ranks_ = 0;
  index_t first_step_ = 0, last_step_ = 0, marks_dropped_ = 0;
  bool emulated_ = false;
  ThinnedCourse<SpreadPoint> spread_{kMostPoints};
  ThinnedCourse<RankPoint> by_rank_{kMostPoints};
  std::vector<PlanMark> marks_;
};

/// The middle of the values that are above 0, of two middles the lower: half of the ranks are not
/// slower than that. 0 where there is none.
[[nodiscard]] double lower_median(std::vector<double> values);

/// Mean times of each rank over the last third of the run, and of the step.
[[nodiscard]] RankPoint last_third(const RankHistory& history);

}  // namespace t3d
