#include "ops/registry.hpp"

#include "device/cuda/cuda_device.hpp"
#include "ops/cuda/make.hpp"

namespace t3d {

bool cuda_built() { return true; }

std::vector<Gpu> visible_gpus() {
  std::vector<Gpu> gpus;
  const int count = cuda_device_count();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    const CudaInfo info = cuda_info(ordinal);
    gpus.push_back({ordinal, info.name, info.identity});
  }
  return gpus;
}

Backend make_cuda_backend(int ordinal, const EngineOptions& options) {
  Backend backend;
  backend.device = make_cuda_device(ordinal);
  backend.ops = make_cuda_ops(*backend.device, options);
  return backend;
}

}  // namespace t3d
