// Continuous widths: the starts from which whole units are made.
#pragma once
#include "hetero/solve/width_grid.hpp"

namespace t3d {

/// Improves `widths` along the axes that are `free` (sums stay those of the grid's units), from the
/// norm of order 2^first + 1 on.
///
/// The largest of the times is approached by norms of them, of order b = 2^m + 1: with the other
/// two axes fixed, sum over i of x_i^b c_i is least at x_i in proportion to c_i^(-1/(b-1)), a root
/// that repeated square roots give. The norm of low order has no bad local optima; by following
/// the optimum to high orders most of those of the largest time are avoided. Only products, sums
/// and square roots: the same bits on every machine.
void follow_norms(const WidthGrid& grid, RealWidths& widths, const std::array<bool, 3>& free,
                  int first = 0);

/// Continuous optima from several starts, the best one first. Empty where limits and speeds of 0
/// leave none.
[[nodiscard]] std::vector<RealWidths> fluid_candidates(const WidthGrid& grid, int starts);

}  // namespace t3d
