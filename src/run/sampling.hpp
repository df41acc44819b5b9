// The choice of the next token from its logits. Random numbers are keyed by (seed, prompt, token),
// so a text does not depend on what else is written beside it.
#pragma once
#include <cstdint>
#include <span>

#include "core/types.hpp"

namespace t3d {

struct SamplingOptions {
  double temperature = 1;  // logits are divided by it
  index_t top_k = 0;       // only the k likeliest; 0 = all
  double top_p = 1;        // of those, the likeliest that make up this share; 1 = all
  bool greedy = false;     // the likeliest, of equal ones the one with the lowest number
  std::int64_t seed = 1;
};

/// Token number `token` of text number `prompt`. `logits`: one for each id, none of them NaN. Of
/// equal logits the lowest id counts as the likelier one. Without top-k and top-p the choice is one
/// pass over the vocabulary; with them only what they may leave is sorted.
[[nodiscard]] std::int32_t choose_token(std::span<const float> logits,
                                        const SamplingOptions& options, index_t prompt,
                                        index_t token);

}  // namespace t3d
