// Frequencies of rotary position embeddings (Su et al. 2021, section 3.2.2) and their scaling to
// longer contexts: linear (Chen et al. 2023, section 2.3), by parts as Llama 3.1 does, and YaRN
// (Peng et al. 2023, sections 3.2 to 3.4). All four are one formula, so that every back end
// computes the same:
//
//   plain(d)     = base^(-2d / head size)                  radians per token of pair d
//   frequency(d) = plain(d) (1 - t (1 - 1/factor)),        t = clamp(c0 + c1 d + c2 plain(d), 0, 1)
//
// t is how far pair d is slowed down: 1 everywhere (linear), by its wave length (llama3) or by its
// number (yarn).
#pragma once
#include <cmath>

#include "core/options.hpp"

namespace t3d {

struct RopeFrequencies {
  double log2_step = 0;  // plain(d) = 2^(d log2_step)
  double c0 = 0, c1 = 0, c2 = 0;
  double shrink = 0;     // 1 - 1/factor
  double amplitude = 1;  // multiplies sine and cosine

  /// Radians per token of pair d; `plain` = 2^(d log2_step), computed as the caller likes.
  [[nodiscard]] constexpr double scaled(double plain, double d) const {
    const double t = c0 + c1 * d + c2 * plain;
    return plain * (1.0 - (t < 0 ? 0.0 : t > 1 ? 1.0 : t) * shrink);
  }
};

/// For heads of `head_size` numbers.
[[nodiscard]] RopeFrequencies rope_frequencies(const RopeOptions& options, index_t head_size);

}  // namespace t3d
