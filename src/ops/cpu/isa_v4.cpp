// Kernels for x86-64-v4; flags are set in src/CMakeLists.txt.
#if defined(__x86_64__)
#define T3D_ISA v4
#include "ops/cpu/isa/table.hpp"

namespace t3d::cpu {
extern const UpdateKernels kUpdateKernelsV4;
extern const Kernels kKernelsV4;
constinit const Kernels kKernelsV4 = v4::table("v4", kUpdateKernelsV4);
}  // namespace t3d::cpu
#endif
