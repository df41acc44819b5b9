#include "hetero/solve/apportion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.hpp"

namespace t3d {
namespace {

using Counts = std::vector<index_t>;

index_t sum(const Counts& counts) {
  return std::accumulate(counts.begin(), counts.end(), index_t{0});
}

class Apportionment {
 public:
  Apportionment(std::size_t parts, index_t total, const PartSeconds& seconds,
                std::span<const index_t> most)
      : total_(total), seconds_(seconds), before_(parts, 0), at_(parts, total) {
    for (std::size_t n = 0; n < most.size(); ++n) at_[n] = std::clamp(most[n], index_t{0}, total);
    check_room("their limits allow");
    at_ = counts_by(std::numeric_limits<double>::max());
    check_room("in finite time they can do");
  }

  Counts solve() {
    if (total_ == 0) return before_;
    find_last_moment();
    return fill();
  }

 private:
  void check_room(const char* what) const {
    const Counts shown(at_.begin(), at_.begin() + std::min<std::ptrdiff_t>(std::ssize(at_), 16));
    if (sum(at_) < total_)
      throw_error(ExitCode::config, "{} units for {} parts, but {} only {}{} = {}", total_,
                  at_.size(), what, fmt::join(shown, " + "),
                  shown.size() < at_.size() ? " + ..." : "", sum(at_));
  }

  /// What every part finishes by `time`, known to lie between before_ and at_.
  [[nodiscard]] Counts counts_by(double time) const {
    Counts counts = before_;
    for (std::size_t n = 0; n < counts.size(); ++n) {
      index_t late = at_[n] + 1;
      while (late - counts[n] > 1) {
        const index_t middle = counts[n] + (late - counts[n]) / 2;
        (seconds_(n, middle) <= time ? counts[n] : late) = middle;
      }
    }
    return counts;
  }

  /// Ends with what all parts finish at the last moment (at_) and before it (before_).
  void find_last_moment() {
    bracket();
    while (late_ - early_ > 1) {
      if (sum(at_) - sum(before_) <= 2 * std::ssize(at_)) return select();
      halve(early_ + (late_ - early_) / 2);
    }
  }

  void halve(std::int64_t bits) {
    Counts counts = counts_by(std::bit_cast<double>(bits));
    const bool enough = sum(counts) >= total_;
    (enough ? late_ : early_) = bits;
    (enough ? at_ : before_) = std::move(counts);
  }

  /// Some part has at least ceil(total / parts) units, and if all can have them, none needs more.
  void bracket() {
    const index_t parts = std::ssize(at_), level = (total_ + parts - 1) / parts;
    double least = std::numeric_limits<double>::max(), most = 0, latest = 0;
    for (std::size_t n = 0; n < at_.size(); ++n) {
      if (at_[n] == 0) continue;
      latest = std::max(latest, seconds_(n, at_[n]));
      most = std::max(most, seconds_(n, std::min(at_[n], level)));
      if (at_[n] >= level) least = std::min(least, seconds_(n, level));
    }
    late_ = std::bit_cast<std::int64_t>(latest);
    if (most < latest) halve(std::bit_cast<std::int64_t>(most));
    const std::int64_t before_least = std::bit_cast<std::int64_t>(least) - 1;
    if (before_least > early_) halve(before_least);
  }

  /// The last moment among the few that are left: when the unit that makes the total is finished.
  void select() {
    std::vector<double> moments;
    for (std::size_t n = 0; n < at_.size(); ++n)
      for (index_t units = before_[n] + 1; units <= at_[n]; ++units)
        moments.push_back(seconds_(n, units));
    const auto last = moments.begin() + (total_ - sum(before_) - 1);
    std::nth_element(moments.begin(), last, moments.end());
    Counts before = counts_by(std::nextafter(*last, -1.0));
    at_ = counts_by(*last);
    before_ = std::move(before);
  }

  /// All parts at the same level, but not below before_ and not above at_.
  [[nodiscard]] Counts at_level(index_t level) const {
    Counts counts(at_.size());
    for (std::size_t n = 0; n < counts.size(); ++n)
      counts[n] = std::clamp(level, before_[n], at_[n]);
    return counts;
  }

  [[nodiscard]] Counts fill() const {
    index_t level = 0, above = total_ + 1;
    while (above - level > 1) {
      const index_t middle = level + (above - level) / 2;
      (sum(at_level(middle)) <= total_ ? level : above) = middle;
    }
    Counts counts = at_level(level);
    index_t rest = total_ - sum(counts);
    for (std::size_t n = 0; n < counts.size() && rest > 0; ++n)
      if (counts[n] <= level && counts[n] < at_[n]) ++counts[n], --rest;
    return counts;
  }

  index_t total_;
  const PartSeconds& seconds_;
  Counts before_, at_;  // units done before and at the last moment, or brackets of them
  /// Too few units are done by the early time, enough by the late one. As the bits of a double,
  /// whose order is that of the numbers >= 0; -1: before any time.
  std::int64_t early_ = -1, late_ = -1;
};

}  // namespace

std::vector<index_t> min_max_apportion(std::size_t parts, index_t total, const PartSeconds& seconds,
                                       std::span<const index_t> most) {
  T3D_CHECK(total >= 0 && (most.empty() || most.size() == parts), "{} units, {} parts, {} limits",
            total, parts, most.size());
  return Apportionment(parts, total, seconds, most).solve();
}

std::vector<index_t> min_max_apportion(index_t total, std::span<const double> speeds,
                                       std::span<const index_t> most) {
  for (std::size_t n = 0; n < speeds.size(); ++n)
    if (!std::isfinite(speeds[n]) || speeds[n] < 0)
      throw_error(ExitCode::config, "speed {} of part {} is not a speed (finite and >= 0)",
                  speeds[n], n);
  if (total > 0 && std::all_of(speeds.begin(), speeds.end(), [](double s) { return s == 0; }))
    throw_error(ExitCode::config, "{} units for {} parts, and all have speed 0", total,
                speeds.size());
  const auto seconds = [&](std::size_t part, index_t units) {
    return static_cast<double>(units) / speeds[part];
  };
  return min_max_apportion(speeds.size(), total, seconds, most);
}

}  // namespace t3d
