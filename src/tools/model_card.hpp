// The model card of an export: what training knows of a checkpoint.
#pragma once
#include <string>

#include "core/options.hpp"
#include "io/checkpoint/checkpoint.hpp"

namespace t3d {

/// Markdown. Losses are those of the run's log, where the checkpoint lies in a run folder.
[[nodiscard]] std::string model_card(const CheckpointInfo& checkpoint, const ModelConfig& model);

}  // namespace t3d
