// SampledFit: a sum of non-negative physical terms, and between and around measured samples what
// they say in addition: the logarithm of measured / fitted seconds is interpolated by radial basis
// functions (inverse quadratic) over the logarithms of the extents, so that an estimate is exact at
// a sample and follows the terms far from all of them. How far a sample reaches is the distance
// with the least leave-one-out error (Rippa, Adv. Comput. Math. 11, 1999).
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "forecast/cluster/operator_terms.hpp"

namespace t3d {

class SampledFit {
 public:
  using Counts = std::function<TermCounts(std::span<const double> shape)>;
  using Places = std::function<Place(std::span<const double> shape)>;

  /// `fit` without terms: made from the samples. One of them has something.
  SampledFit(Fit fit, const std::vector<Sample>& samples, const TableForm& form,
             const Counts& counts, const Places& places);

  [[nodiscard]] double seconds(const TermCounts& counts, const Place& place) const;
  /// By the terms alone.
  [[nodiscard]] double fitted(const TermCounts& counts) const;
  [[nodiscard]] const Fit& fit() const { return fit_; }
  /// Reach of a sample, in the logarithm of extents; 0 = no correction.
  [[nodiscard]] double reach() const { return reach_; }

  /// The terms that fit these samples best, by relative error, with their standard errors: of both
  /// forms the one with less.
  [[nodiscard]] static Fit of_samples(const std::vector<Sample>& samples, const TableForm& form,
                                      const Counts& counts);

 private:
  /// `residuals`: logarithms of measured / fitted seconds.
  void interpolate(const std::vector<Place>& places, const std::vector<double>& residuals);

  Fit fit_;
  std::array<double, kMostTerms> terms_{};
  double reach_ = 0;
  std::size_t columns_ = 0, count_ = 0;
  std::vector<double> places_;   // column by column
  std::vector<double> weights_;  // of each sample
};

/// Relative errors |estimate / measured - 1| of each sample by what the other samples say; none
/// where there are no others.
[[nodiscard]] std::vector<double> leave_one_out(const std::vector<Sample>& samples,
                                                const TableForm& form,
                                                const SampledFit::Counts& counts,
                                                const SampledFit::Places& places);

}  // namespace t3d
