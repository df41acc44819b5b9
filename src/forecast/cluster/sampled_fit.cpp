#include "forecast/cluster/sampled_fit.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "forecast/cluster/nnls.hpp"

namespace t3d {
namespace {

/// How far a sample may reach, in logarithms of extents.
constexpr std::array kReaches{0.35, 0.7, 1.4, 2.8, 5.6};

double seconds_by(FitForm form, std::span<const double> terms, std::span<const double> counts) {
  double computing = 0, memory = 0;
  for (std::size_t at = 1; at < terms.size(); ++at)
    (at == 1 ? computing : memory) += terms[at] * counts[at];
  const double work = form == FitForm::sum ? computing + memory : std::max(computing, memory);
  return terms[0] * counts[0] + work;
}

/// Relative equations: each row over its seconds. Terms that `counts_in` refuses are left out.
template <class CountsIn>
NonNegativeFit relative_fit(const std::vector<Sample>& samples,
                            const std::vector<TermCounts>& counts, std::size_t terms,
                            const CountsIn& counts_in) {
  std::vector<std::vector<double>> rows;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    std::vector<double>& row = rows.emplace_back();
    for (std::size_t j = 0; j < terms; ++j)
      row.push_back(counts_in(i, j) ? counts[i][j] / samples[i].seconds : 0);
  }
  return non_negative_fit(rows, std::vector<double>(samples.size(), 1));
}

double relative_error(const std::vector<Sample>& samples, const std::vector<TermCounts>& counts,
                      const Fit& fit) {
  double squares = 0;
  for (std::size_t i = 0; i < samples.size(); ++i)
    squares += std::pow(seconds_by(fit.form, fit.terms, counts[i]) / samples[i].seconds - 1, 2);
  return squares;
}

/// Whether each sample is bound by computing decides which terms it tells of; and those decide it.
Fit bound_fit(const std::vector<Sample>& samples, const std::vector<TermCounts>& counts, Fit fit) {
  constexpr int kTurns = 20;
  const std::size_t terms = fit.terms.size();
  fit.form = FitForm::max;
  std::vector<bool> computing(samples.size());
  for (int turn = 0; turn < kTurns; ++turn) {
    const std::vector<bool> before = computing;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      double memory = 0;
      for (std::size_t j = 2; j < terms; ++j) memory += fit.terms[j] * counts[i][j];
      computing[i] = fit.terms[1] * counts[i][1] >= memory;
    }
    if (turn > 0 && computing == before) break;
    const NonNegativeFit next = relative_fit(
        samples, counts, terms,
        [&](std::size_t i, std::size_t j) { return j == 0 || (j == 1) == computing[i]; });
    fit.terms = next.x;
    fit.errors = next.errors;
  }
  return fit;
}

double kernel(double square, double reach) { return 1 / (1 + square / (reach * reach)); }

double square_distance(const Place& a, const Place& b) {
  double sum = 0;
  for (std::size_t at = 0; at < a.size(); ++at) sum += (a[at] - b[at]) * (a[at] - b[at]);
  return sum;
}

struct Interpolation {
  std::vector<double> weights;
  double error = std::numeric_limits<double>::infinity();  // leave one out, mean square
};

Interpolation interpolation(const std::vector<Place>& places, const std::vector<double>& residuals,
                            double reach) {
  const std::size_t n = places.size();
  std::vector<double> factor(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j < n; ++j)
      factor[i * n + j] = kernel(square_distance(places[i], places[j]), reach);
  Interpolation result;
  result.weights = residuals;
  if (!solve_positive(factor, result.weights)) return result;
  result.error = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> unit(n, 0);
    unit[i] = 1;
    solve_with_factor(factor, unit);
    result.error += std::pow(result.weights[i] / unit[i], 2) / static_cast<double>(n);
  }
  return result;
}

std::vector<TermCounts> counts_of(const std::vector<Sample>& samples, const TableForm& form,
                                  const SampledFit::Counts& counts) {
  std::vector<TermCounts> all;
  for (const Sample& sample : samples)
    all.push_back(counts(std::span(sample.shape).first(form.columns.size())));
  return all;
}

}  // namespace

SampledFit::SampledFit(Fit fit, const std::vector<Sample>& samples, const TableForm& form,
                       const Counts& counts, const Places& places)
    : fit_(std::move(fit)), columns_(form.columns.size()) {
  if (fit_.terms.empty()) fit_ = of_samples(samples, form, counts);
  std::copy(fit_.terms.begin(), fit_.terms.end(), terms_.begin());
  std::vector<Place> known;
  std::vector<double> residuals;
  for (const Sample& sample : samples) {
    const std::span<const double> shape = std::span(sample.shape).first(columns_);
    const double expected = fitted(counts(shape));
    if (expected <= 0) continue;
    const Place place = places(shape);
    const auto same = std::find(known.begin(), known.end(), place);
    const double residual = std::log(sample.seconds / expected);
    if (same != known.end()) {  // the later one counts
      residuals[static_cast<std::size_t>(same - known.begin())] = residual;
      continue;
    }
    known.push_back(place);
    residuals.push_back(residual);
  }
  interpolate(known, residuals);
}

void SampledFit::interpolate(const std::vector<Place>& places,
                             const std::vector<double>& residuals) {
  Interpolation best;
  for (const double reach : kReaches) {
    Interpolation next = interpolation(places, residuals, reach);
    if (!(next.error < best.error)) continue;
    best = std::move(next);
    reach_ = reach;
  }
  if (reach_ == 0) return;
  count_ = places.size();
  weights_ = std::move(best.weights);
  for (std::size_t column = 0; column < columns_; ++column)
    for (const Place& place : places) places_.push_back(place[column] / reach_);
}

double SampledFit::fitted(const TermCounts& counts) const {
  return seconds_by(fit_.form, std::span(terms_).first(fit_.terms.size()), counts);
}

double SampledFit::seconds(const TermCounts& counts, const Place& place) const {
  constexpr std::size_t kPart =
      64;  // samples at a time, column by column: vectors of the processor
  double correction = 0;
  for (std::size_t begin = 0; begin < count_; begin += kPart) {
    const std::size_t part = std::min(kPart, count_ - begin);
    std::array<double, kPart> squares{};
    for (std::size_t column = 0; column < columns_; ++column) {
      const double* const others = places_.data() + column * count_ + begin;
      const double own = place[column] / reach_;
      for (std::size_t at = 0; at < part; ++at)
        squares[at] += (others[at] - own) * (others[at] - own);
    }
    for (std::size_t at = 0; at < part; ++at)
      correction += weights_[begin + at] / (1 + squares[at]);
  }
  return fitted(counts) * std::exp(correction);
}

Fit SampledFit::of_samples(const std::vector<Sample>& samples, const TableForm& form,
                           const Counts& counts) {
  const std::size_t terms = form.terms.size();
  const std::vector<TermCounts> all = counts_of(samples, form, counts);
  const NonNegativeFit sum =
      relative_fit(samples, all, terms, [](std::size_t, std::size_t) { return true; });
  const Fit fit{FitForm::sum, sum.x, sum.errors};
  if (!form.computes) return fit;
  const Fit bound = bound_fit(samples, all, fit);
  return relative_error(samples, all, bound) < relative_error(samples, all, fit) ? bound : fit;
}

std::vector<double> leave_one_out(const std::vector<Sample>& samples, const TableForm& form,
                                  const SampledFit::Counts& counts,
                                  const SampledFit::Places& places) {
  std::vector<double> errors;
  if (samples.size() < 2) return errors;
  for (std::size_t out = 0; out < samples.size(); ++out) {
    std::vector<Sample> others = samples;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(out));
    const SampledFit fit({}, others, form, counts, places);
    const std::span<const double> shape = std::span(samples[out].shape).first(form.columns.size());
    errors.push_back(
        std::abs(fit.seconds(counts(shape), places(shape)) / samples[out].seconds - 1));
  }
  return errors;
}

}  // namespace t3d
