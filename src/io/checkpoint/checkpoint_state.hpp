// What a checkpoint says of itself, read by one process.
#pragma once
#include <string>

#include "io/checkpoint/checkpoint.hpp"

namespace t3d {

/// Of a published checkpoint. Error(io) when its manifest is damaged.
[[nodiscard]] CheckpointState read_checkpoint_state(const std::string& path);

}  // namespace t3d
