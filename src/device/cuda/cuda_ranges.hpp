// NVTX as Ranges. This header names nothing of CUDA.
#pragma once
#include <memory>

#include "device/ranges.hpp"

namespace t3d {

/// In the domain "transformer3d"; null where no profiler looks at this process.
[[nodiscard]] std::unique_ptr<Ranges> make_cuda_ranges();

}  // namespace t3d
