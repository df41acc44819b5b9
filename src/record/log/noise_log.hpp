// What log.jsonl says of the noise of the gradient.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct LoggedNoise {
  index_t step = 0;
  double tokens = 0;   // of the step
  double context = 0;  // tokens of a sequence in its life, by run.json; 0 = not known
  double gradient_signal = 0, gradient_noise = 0;  // StepRecord's
};

/// Of all steps of DIR/log.jsonl that know it; other lines are passed over. Error(no_input) where
/// there is no such file, Error(io) where it cannot be read. A run.json that is none says nothing.
[[nodiscard]] std::vector<LoggedNoise> logged_noise(const std::string& dir);

}  // namespace t3d
