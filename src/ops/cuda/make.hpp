// The door of the CUDA back end: this header names nothing of CUDA, the registry includes it.
#pragma once
#include <memory>

#include "device/device.hpp"
#include "ops/engine_options.hpp"
#include "ops/ops.hpp"

namespace t3d {

/// Ops on a CUDA device, which must outlive them. Throws ExitCode::unavailable where the options
/// ask for a library that is not there.
[[nodiscard]] std::unique_ptr<Ops> make_cuda_ops(Device& device, const EngineOptions& options);

}  // namespace t3d
