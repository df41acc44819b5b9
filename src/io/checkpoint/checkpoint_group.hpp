// The group that checkpoints communicate in.
#pragma once
#include <memory>

#include "comm/communicator.hpp"

namespace t3d {

/// Its axis label: bytes of checkpoints are counted apart, and its waits, in which a rank may be
/// busy with a file, have a limit of their own (Communicator::set_wait_limit).
inline constexpr const char* kCheckpointAxis = "checkpoint";

/// Collective. All ranks of `world`.
[[nodiscard]] std::unique_ptr<Communicator> checkpoint_group(Communicator& world);

}  // namespace t3d
