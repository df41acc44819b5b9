// Branch and bound over whole widths: exact, and the source of certified bounds.
#pragma once
#include <optional>

#include "hetero/solve/width_grid.hpp"

namespace t3d {

struct WidthsFound {
  UnitWidths units;
  double seconds = 0;
};

struct SearchResult {
  std::optional<WidthsFound> best;
  /// The whole tree was looked at: `best` is the optimum, or no widths are within the limit.
  bool complete = false;
};

/// The best widths with seconds <= limit. Ends early after about `operations` visits of a rank.
/// Work per unit is one, so units of all axes must be positive.
///
/// The parts of one axis are fixed one after the other, then those of the second; the third follows
/// by exact apportionment. With the parts k < m of the first axis fixed, x_i y_j is at most T e_ij,
/// e_ij = min(min over k < m of s_ijk / z_k, sum over k >= m of s_ijk / rest of Z). So
/// x_i <= floor(T sum_j e_ij / Y), and these must reach X; likewise y_j.
[[nodiscard]] SearchResult search_widths(const WidthGrid& grid, double limit, index_t operations);

/// Two times that differ by less than this part are one: the same products in another order.
inline constexpr double kSameTime = 1e-12;

}  // namespace t3d
