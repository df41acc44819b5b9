// Which communicators this program has for device memory. CMake links comm/nccl/registry.cpp or,
// without NCCL, comm/no_nccl.cpp; no other file asks.
#pragma once
#include <memory>

#include "comm/communicator.hpp"

namespace t3d {

[[nodiscard]] bool nccl_built();

/// The world of ranks whose data is in GPU memory, one GPU each. Collective over `host_world`,
/// whose ledger and watchdog it shares. Throws ExitCode::unavailable where NCCL was not built.
[[nodiscard]] std::unique_ptr<Communicator> make_gpu_world(Communicator& host_world, Device& device,
                                                           Queue& queue);

}  // namespace t3d
