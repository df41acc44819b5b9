#include "forecast/cluster/nnls.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace t3d {
namespace {

/// The problem in the unknowns that may be above 0, each scaled so that its column has length 1.
class ActiveSet {
 public:
  ActiveSet(const std::vector<std::vector<double>>& rows, const std::vector<double>& b)
      : rows_(rows), b_(b), unknowns_(rows.empty() ? 0 : rows.front().size()) {
    scales_.assign(unknowns_, 0);
    for (const auto& row : rows_)
      for (std::size_t j = 0; j < unknowns_; ++j) scales_[j] += row[j] * row[j];
    for (double& scale : scales_) scale = scale > 0 ? std::sqrt(scale) : 0;
    gram_.assign(unknowns_ * unknowns_, 0);
    right_.assign(unknowns_, 0);
    for (std::size_t i = 0; i < rows_.size(); ++i)
      for (std::size_t j = 0; j < unknowns_; ++j) {
        right_[j] += scaled(i, j) * b_[i];
        for (std::size_t k = 0; k < unknowns_; ++k)
          gram_[j * unknowns_ + k] += scaled(i, j) * scaled(i, k);
      }
    x_.assign(unknowns_, 0);
  }

  [[nodiscard]] NonNegativeFit solve() {
    std::vector<bool> refused(unknowns_, false);
    for (std::size_t turn = 0; turn < 3 * unknowns_; ++turn) {
      const std::ptrdiff_t next = steepest(refused);
      if (next < 0) break;
      positive_.push_back(static_cast<std::size_t>(next));
      if (!descend()) {  // what it could say, others say already
        std::erase(positive_, static_cast<std::size_t>(next));
        refused[static_cast<std::size_t>(next)] = true;
      }
    }
    return result();
  }

 private:
  [[nodiscard]] double scaled(std::size_t i, std::size_t j) const {
    return scales_[j] > 0 ? rows_[i][j] / scales_[j] : 0;
  }
  [[nodiscard]] bool is_positive(std::size_t j) const {
    return std::find(positive_.begin(), positive_.end(), j) != positive_.end();
  }

  /// The unknown at 0 whose growth reduces the residual most; -1 = none does.
  [[nodiscard]] std::ptrdiff_t steepest(const std::vector<bool>& refused) const {
    constexpr double kLeast = 1e-10;
    double norm = 0;
    for (const double value : b_) norm += value * value;
    std::ptrdiff_t best = -1;
    double most = kLeast * std::sqrt(norm);
    for (std::size_t j = 0; j < unknowns_; ++j) {
      if (refused[j] || is_positive(j)) continue;
      double slope = right_[j];
      for (std::size_t k = 0; k < unknowns_; ++k) slope -= gram_[j * unknowns_ + k] * x_[k];
      if (slope > most) {
        most = slope;
        best = static_cast<std::ptrdiff_t>(j);
      }
    }
    return best;
  }

  /// The least squares of the positive unknowns, less those that would fall below 0.
  bool descend() {
    for (;;) {
      std::vector<double> matrix = positive_gram(), z;
      for (const std::size_t j : positive_) z.push_back(right_[j]);
      if (!solve_positive(matrix, z)) return false;
      double step = 1;
      for (std::size_t at = 0; at < z.size(); ++at) {
        const double now = x_[positive_[at]];
        if (z[at] <= 0) step = std::min(step, now / (now - z[at]));
      }
      for (std::size_t at = 0; at < z.size(); ++at)
        x_[positive_[at]] += step * (z[at] - x_[positive_[at]]);
      if (step >= 1) return true;
      std::erase_if(positive_, [&](std::size_t j) {
        const bool gone = x_[j] <= 1e-14;
        if (gone) x_[j] = 0;
        return gone;
      });
      if (positive_.empty()) return true;
    }
  }

  [[nodiscard]] std::vector<double> positive_gram() const {
    std::vector<double> matrix;
    for (const std::size_t j : positive_)
      for (const std::size_t k : positive_) matrix.push_back(gram_[j * unknowns_ + k]);
    return matrix;
  }

  [[nodiscard]] NonNegativeFit result() const {
    NonNegativeFit fit;
    fit.x.assign(unknowns_, 0);
    fit.errors.assign(unknowns_, 0);
    for (std::size_t j = 0; j < unknowns_; ++j)
      if (scales_[j] > 0) fit.x[j] = x_[j] / scales_[j];
    double squares = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      double distance = -b_[i];
      for (std::size_t j = 0; j < unknowns_; ++j) distance += rows_[i][j] * fit.x[j];
      squares += distance * distance;
    }
    if (rows_.empty()) return fit;
    fit.residual = std::sqrt(squares / static_cast<double>(rows_.size()));
    if (rows_.size() <= positive_.size()) return fit;
    const double variance = squares / static_cast<double>(rows_.size() - positive_.size());
    std::vector<double> matrix = positive_gram(), unused(positive_.size(), 0);
    if (!solve_positive(matrix, unused)) return fit;
    for (std::size_t at = 0; at < positive_.size(); ++at) {
      std::vector<double> unit(positive_.size(), 0);
      unit[at] = 1;
      solve_with_factor(matrix, unit);
      fit.errors[positive_[at]] = std::sqrt(variance * unit[at]) / scales_[positive_[at]];
    }
    return fit;
  }

  const std::vector<std::vector<double>>& rows_;
  const std::vector<double>& b_;
  std::size_t unknowns_;
  std::vector<double> scales_, gram_, right_, x_;  // x of scaled columns
  std::vector<std::size_t> positive_;
};

}  // namespace

NonNegativeFit non_negative_fit(const std::vector<std::vector<double>>& rows,
                                const std::vector<double>& b) {
  return ActiveSet(rows, b).solve();
}

bool solve_positive(std::vector<double>& matrix, std::vector<double>& b) {
  constexpr double kLeast = 1e-12;  // of a pivot, relative: below it a column repeats others
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j) {
    const double diagonal = matrix[j * n + j];
    double pivot = diagonal;
    for (std::size_t k = 0; k < j; ++k) pivot -= matrix[j * n + k] * matrix[j * n + k];
    if (!(pivot > kLeast * diagonal)) return false;
    pivot = std::sqrt(pivot);
    matrix[j * n + j] = pivot;
    for (std::size_t i = j + 1; i < n; ++i) {
      double sum = matrix[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= matrix[i * n + k] * matrix[j * n + k];
      matrix[i * n + j] = sum / pivot;
    }
  }
  solve_with_factor(matrix, b);
  return true;
}

void solve_with_factor(const std::vector<double>& factor, std::vector<double>& b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= factor[i * n + k] * b[k];
    b[i] /= factor[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= factor[k * n + i] * b[k];
    b[i] /= factor[i * n + i];
  }
}

}  // namespace t3d
