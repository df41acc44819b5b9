// The noise scale that a run has measured, as a law in sequences of the planned context.
#pragma once
#include <string>

#include "forecast/elastic/noise_law.hpp"

namespace t3d {

struct NoiseOfRun {
  NoiseLaw law;
  /// Tokens of the run's sequences, of its last step: its own, by run.json, else by resolved.toml;
  /// where neither says it, the planned ones.
  index_t context = 0;
};

/// Of DIR/log.jsonl, in sequences of `context` tokens: gradients of a sequence n times as long are
/// taken to have an n-th of the noise, as n sequences together have. Error(no_input) where there is
/// no log, Error(config) where it does not tell the noise scale, with how to get it.
[[nodiscard]] NoiseOfRun noise_of_run(const std::string& dir, index_t context);

}  // namespace t3d
