// Kernels for x86-64-v3; flags are set in src/CMakeLists.txt.
#if defined(__x86_64__)
#define T3D_ISA v3
#include "ops/cpu/isa/table.hpp"

namespace t3d::cpu {
extern const UpdateKernels kUpdateKernelsV3;
extern const Kernels kKernelsV3;
constinit const Kernels kKernelsV3 = v3::table("v3", kUpdateKernelsV3);
}  // namespace t3d::cpu
#endif
