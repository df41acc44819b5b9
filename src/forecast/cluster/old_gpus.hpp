// GPUs from before tensor cores knew bf16 (compute capability below 8.0: NVIDIA's Kepler to
// Turing), by the names that drivers give them.
#pragma once
#include <string_view>

namespace t3d {

/// Our GPU kernels do not run on these: they use instructions of capability 8.0. A GPU whose name
/// is not known is none of them.
[[nodiscard]] bool is_old_gpu(std::string_view device);

}  // namespace t3d
