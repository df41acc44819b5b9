// Non-negative least squares: x >= 0 that minimises |A x - b|. Active set (Lawson and Hanson,
// "Solving Least Squares Problems", 1974, chapter 23), by normal equations: for the few well
// scaled unknowns of a cost model. Columns are scaled to length 1 inside.
#pragma once
#include <vector>

namespace t3d {

struct NonNegativeFit {
  std::vector<double> x;
  /// Standard error of each x > 0, from the residuals: sqrt(s^2 (A^T A)^-1) over those; 0 for the
  /// others, and where there are no more rows than unknowns.
  std::vector<double> errors;
  double residual = 0;  // root mean square of A x - b
};

/// `rows`: of A, all of the same length as there are unknowns. `b`: as many as rows.
[[nodiscard]] NonNegativeFit non_negative_fit(const std::vector<std::vector<double>>& rows,
                                              const std::vector<double>& b);

/// Solves M x = b for a symmetric positive definite M [n x n], row by row; false where it is not.
/// M becomes its Cholesky factor, b becomes x.
[[nodiscard]] bool solve_positive(std::vector<double>& matrix, std::vector<double>& b);
/// With the factor that solve_positive() left.
void solve_with_factor(const std::vector<double>& factor, std::vector<double>& b);

}  // namespace t3d
