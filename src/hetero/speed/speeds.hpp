// What is known about how fast ranks are: for each class of operator a curve from work to seconds,
// the price of messages, and free memory. Measured by the probe, corrected by the steps of the run,
// or stated by the user; the planner's only source. Pure data and arithmetic.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "hetero/cost/flops.hpp"

namespace t3d {

/// Classes of operators, as the fields of StepWork. `whole`: Newton-Schulz (Muon).
enum class WorkClass : int { matmul, attention, whole, streamed, count_ };
inline constexpr std::size_t kWorkClasses = static_cast<std::size_t>(WorkClass::count_);
[[nodiscard]] const char* name_of(WorkClass work);
/// In the class's unit: flops, for `streamed` bytes.
[[nodiscard]] double work_of(const StepWork& work, WorkClass kind);

/// Seconds as a function of the work of one class in one step: through measured points, never
/// falling. Lastovetsky's functional performance model with a safety rail.
class TimeCurve {
 public:
  TimeCurve() = default;
  /// A stated rate, not a measured one: seconds = work / rate, trusted everywhere. Rate > 0,
  /// finite.
  static TimeCurve of_rate(double rate);

  /// Work > 0, seconds > 0, both finite. A point with the same work (within 1 %) is replaced, and a
  /// stated rate by the first measured point.
  void add(double work, double seconds);
  /// 0 for no work. Between points linear, after pooling of adjacent violators made the seconds
  /// nondecreasing in work; below the first point and beyond the last in proportion to it.
  /// Infinity where the curve has no points.
  [[nodiscard]] double seconds(double work) const;
  /// At the best rate of the curve: no part of the work is done faster.
  [[nodiscard]] double least_seconds(double work) const;
  [[nodiscard]] bool empty() const { return points_.empty(); }
  /// Trust region: the part of `work` up to twice the largest measured work; all of it by a stated
  /// rate, nothing where the curve has no points.
  [[nodiscard]] double trusted(double work) const;
  [[nodiscard]] bool stated() const { return stated_; }
  /// All seconds times `factor` > 0.
  void scale(double factor);

  struct Point {
    double work = 0, seconds = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  /// By ascending work, as added; one point of one second where the rate is stated.
  [[nodiscard]] const std::vector<Point>& points() const { return points_; }
  friend bool operator==(const TimeCurve&, const TimeCurve&) = default;

 private:
  void pool();
  std::vector<Point> points_;
  std::vector<double> pooled_;  // seconds of each point, nondecreasing
  bool stated_ = false;
};

struct RankSpeed {
  std::string node, device;  // host name; "cpu" or the GPU's name
  std::array<TimeCurve, kWorkClasses> curves;
  index_t free_bytes = 0;  // memory for tensors; 0 = not known
  /// Relative standard error of a step's seconds, as far as samples show it; 0 = stated.
  double error = 0;

  [[nodiscard]] TimeCurve& curve(WorkClass kind) { return curves[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const TimeCurve& curve(WorkClass kind) const {
    return curves[static_cast<std::size_t>(kind)];
  }
  /// Seconds of one class for this work; the rank can do no work at all where a needed curve is
  /// empty.
  [[nodiscard]] double seconds(WorkClass kind, const StepWork& work) const {
    return curve(kind).seconds(work_of(work, kind));
  }
  /// Sum over the classes.
  [[nodiscard]] double seconds(const StepWork& work) const;
  /// The work of every class lies in the trust region of its curve.
  [[nodiscard]] bool trusts(const StepWork& work) const;
};

/// One message of b bytes: alpha + beta b seconds.
struct LinkSpeed {
  double alpha_seconds = 0, beta_seconds_per_byte = 0;
  friend bool operator==(const LinkSpeed&, const LinkSpeed&) = default;
};

/// By world rank. A rank of speed 0 (nothing may be placed on it) has no points in any curve.
struct Speeds {
  std::vector<RankSpeed> ranks;
  LinkSpeed inside, between;  // ranks of one node; of different nodes

  /// All ranks alike at this work, for all that is known: the slowest needs at most (1 + tolerance)
  /// times the seconds of the fastest, where both may be off by two standard errors, of 20 % at
  /// most; and no rank has speed 0.
  [[nodiscard]] bool equal(const StepWork& work, double tolerance) const;
  /// They are so only because of their errors: another measurement would tell.
  [[nodiscard]] bool doubtful(const StepWork& work, double tolerance) const;
  /// Of each rank the measurement with less error. `again`: of the same ranks.
  void take_better(const Speeds& again);
  /// Both measurements, at different shapes: the points of all curves; links and memory of `more`.
  void join(const Speeds& more);
  /// JSON, one rank per line; parse_speeds() gives the same numbers back, bit for bit.
  [[nodiscard]] std::string text() const;
};
/// Of this form, one entry per rank in the order of world ranks. A class of work is a list of
/// measured points [work, seconds], or a stated rate (work per second); [] and 0: can do none of
/// it.
///   {"ranks": [{"node": "a", "device": "cpu", "free_bytes": 0, "error": 0, "matmul": 4.2e10,
///               "attention": [[1e9, 0.05], [2e9, 0.09]], "whole": [], "streamed": 9e9}],
///    "inside": {"alpha_seconds": 1e-6, "beta_seconds_per_byte": 1e-10}, "between": {...}}
/// node, device, free_bytes, error, inside and between may be absent. Throws Error(config) naming
/// `source` and the field where the text is not of this form, or holds a negative or not finite
/// number, or where no rank has any speed.
[[nodiscard]] Speeds parse_speeds(const std::string& text, const std::string& source);

}  // namespace t3d
