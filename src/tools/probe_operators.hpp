// transformer3d probe --operators FILE: the operators of an input's plan one by one, for rooflines.
#pragma once
#include <string>

#include "config/config.hpp"
#include "core/plan.hpp"
#include "train/machine.hpp"

namespace t3d {

/// Collective over machine.world(): every rank measures what rank 0 has in a step of `plan`. Rank 0
/// writes its own numbers into `file` (record/study/roofline.hpp), and returns what to say.
[[nodiscard]] std::string probe_operators(Machine& machine, const Plan& plan, const Config& config,
                                          const std::string& file);

}  // namespace t3d
