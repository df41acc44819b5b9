// How likely it is that a node is lost, as a function of its age: the hours since it came to the
// job. Li, Walls, Guo (ICDCS 2020) counted revocations of cloud GPUs by hour of life; a Weibull
// distribution with a shape of 0.24 to 0.42 fits them, an exponential one (constant hazard) does
// not: most nodes that are lost are lost in their first hour.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace t3d {

/// Losses per hour of one node from this age on, up to that of the next bucket.
struct AgeBucket {
  double from_hours = 0, per_hour = 0;
  friend bool operator==(const AgeBucket&, const AgeBucket&) = default;
};

class Hazard {
 public:
  /// Never.
  Hazard() = default;
  /// Probability to live longer than t hours: exp(-(t / scale)^shape). Both > 0, finite. Below the
  /// age `flat_hours` >= 0 the hazard is constant, with the same probability to reach that age:
  /// counts by the hour do not say when in its first hour a node goes, and a shape < 1 would put
  /// most of it into the first minutes.
  [[nodiscard]] static Hazard weibull(double shape, double scale_hours, double flat_hours = 0);
  /// The first from 0, ascending, rates >= 0 and finite; the last goes on for ever.
  [[nodiscard]] static Hazard of_buckets(std::vector<AgeBucket> buckets);
  [[nodiscard]] static Hazard constant(double per_hour) { return of_buckets({{0, per_hour}}); }

  /// Losses per hour at this age >= 0. A Weibull hazard of shape < 1 is infinite at 0; where
  /// it is not flat, the first minute has the value at its end.
  [[nodiscard]] double per_hour(double age_hours) const;
  /// Its integral from 0 (exact, from 0 on): a node lives to this age with exp(-cumulative).
  [[nodiscard]] double cumulative(double age_hours) const;
  /// The age at which the integral is `sum` >= 0; infinity where it never is.
  [[nodiscard]] double age_at(double sum) const;

  [[nodiscard]] bool never() const { return shape_ == 0 && buckets_.empty(); }
  /// 0, where it is none of Weibull's.
  [[nodiscard]] double shape() const { return shape_; }
  [[nodiscard]] double scale_hours() const { return scale_; }
  [[nodiscard]] double flat_hours() const { return flat_; }
  [[nodiscard]] const std::vector<AgeBucket>& buckets() const { return buckets_; }
  friend bool operator==(const Hazard&, const Hazard&) = default;

 private:
  double shape_ = 0, scale_ = 0, flat_ = 0, flat_sum_ = 0;
  std::vector<AgeBucket> buckets_;
  std::vector<double> sums_;  // the integral at the beginning of each bucket
};

/// Weibull hazards fitted to published counts of the first 24 hours (CM-DARE, 396 servers of Google
/// Cloud in 2019): "K80" 0.32 and 110 h, "P100" 0.42 and 40 h, "V100" 0.24 and 45 h; flat in
/// the first hour. Nothing for other names.
[[nodiscard]] std::optional<Hazard> published_hazard(std::string_view gpu);

/// How long a node was seen, and whether it was lost then or only no longer seen.
struct NodeLife {
  double hours = 0;
  bool lost = false;
};

/// What a site's own history makes of `prior`. For each bucket of age the hourly hazard has a Gamma
/// prior with the prior's mean in that bucket and the weight of `prior_losses` > 0 losses; the mean
/// after the history is (prior_losses + losses) / (prior_losses / prior mean + hours seen). A
/// bucket without history keeps the prior's mean. `prior` that is never lost: a mean of 1e-4 per
/// hour.
[[nodiscard]] Hazard update_hazard(const Hazard& prior, std::span<const NodeLife> lives,
                                   double prior_losses = 1);

}  // namespace t3d
