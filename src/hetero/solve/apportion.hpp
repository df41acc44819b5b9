// Exact min-max apportionment: whole units dealt to parts so that the last one to finish finishes
// as early as possible. Pure and deterministic, the same on every rank.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Seconds of part n with x units: nondecreasing in x, may be infinity. Not asked for x = 0: a part
/// without work does not delay the others.
using PartSeconds = std::function<double(std::size_t part, index_t units)>;

/// x[n] >= 0 with sum `total` that minimise max_n seconds(n, x[n]). Of several optima the one in
/// which every part holds all that it finishes before the last moment; units that finish at the
/// last moment go to the parts with the fewest units, ties to the lower part. So equal parts get
/// equal units, the first ones the extra (Partition::even). Bisection over the doubles, so exact
/// (Ibaraki and Katoh, Resource Allocation Problems, 1988, chapter 5). `most`: upper limits by
/// part, below 0 as 0, empty = none. Throws Error(config) where the limits, or the units that take
/// finite seconds, are fewer than the total.
[[nodiscard]] std::vector<index_t> min_max_apportion(std::size_t parts, index_t total,
                                                     const PartSeconds& seconds,
                                                     std::span<const index_t> most = {});

/// The same for seconds = units / speed: no part gets any at speed 0. Throws Error(config) also
/// where a speed is negative or not finite, or where all are 0 while total > 0.
[[nodiscard]] std::vector<index_t> min_max_apportion(index_t total, std::span<const double> speeds,
                                                     std::span<const index_t> most = {});

}  // namespace t3d
