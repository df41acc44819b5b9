// A GPU as a Device. This header names nothing of CUDA: the registry includes it.
#pragma once
#include <memory>
#include <string>

#include "device/device.hpp"

namespace t3d {

/// What the driver says about one GPU.
struct CudaInfo {
  int ordinal = 0;
  std::string name;
  std::string identity;  // the GPU's own number, whatever this process calls it
  int capability = 0;    // 10 major + minor
  int multiprocessors = 0;
  index_t memory_bytes = 0;
  int driver = 0, runtime = 0;  // 1000 major + 10 minor
};

/// Number of GPUs that this process can see. Throws ExitCode::unavailable, with the driver's words,
/// where there is no driver or an older one than this program needs.
[[nodiscard]] int cuda_device_count();
[[nodiscard]] CudaInfo cuda_info(int ordinal);

/// The GPU number `ordinal` of this process; this thread's current one from then on.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(int ordinal);

}  // namespace t3d
