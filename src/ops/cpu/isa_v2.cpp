// Kernels for x86-64-v2 (on other machines: the compiler's baseline); flags are set in
// src/CMakeLists.txt.
#define T3D_ISA v2
#include "ops/cpu/isa/table.hpp"

namespace t3d::cpu {
extern const UpdateKernels kUpdateKernelsV2;
extern const Kernels kKernelsV2;
constinit const Kernels kKernelsV2 = v2::table("v2", kUpdateKernelsV2);
}  // namespace t3d::cpu
