// Which communicators this program has for device memory. CMake links comm/nccl/registry.cpp or,
// without NCCL, comm/no_nccl.cpp; no other file asks.
#pragma once
#include <memory>

#include "comm/communicator.hpp"

namespace t3d {

[[nodiscard]] bool nccl_built();

/// The group of ranks whose data is in GPU memory, one GPU each: that of `host_group`, one of
/// `host_world`'s, or, where it is null, all of `host_world`. Collective over the group; shares
/// ledger and watchdog of `host_world`. Throws ExitCode::unavailable where NCCL was not built.
[[nodiscard]] std::unique_ptr<Communicator> make_gpu_world(
    Communicator& host_world, Device& device, Queue& queue,
    std::unique_ptr<Communicator> host_group = nullptr);

}  // namespace t3d
