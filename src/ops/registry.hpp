// What this program can compute on. CMake links one of two implementations: ops/cuda/registry.cpp,
// or ops/no_cuda.cpp where there is no CUDA toolkit; no other file asks.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ops/engine_options.hpp"
#include "ops/ops.hpp"

namespace t3d {

struct Gpu {
  int ordinal = 0;
  std::string name, identity;  // identity: the same text wherever the same GPU is seen
};

/// GPUs of this process. Throws ExitCode::unavailable, saying why, where there can be none: built
/// without CUDA, no driver, one that is too old.
[[nodiscard]] std::vector<Gpu> visible_gpus();
[[nodiscard]] bool cuda_built();

struct Backend {
  std::unique_ptr<Device> device;
  std::unique_ptr<Ops> ops;
};
/// The GPU `ordinal` of visible_gpus(). Throws like it.
[[nodiscard]] Backend make_cuda_backend(int ordinal, const EngineOptions& options);

}  // namespace t3d
