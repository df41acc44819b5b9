// Exact kernels for x86-64-v3; flags are set in src/CMakeLists.txt.
#if defined(__x86_64__)
#define T3D_ISA v3
#include "ops/cpu/isa/update_table.hpp"

namespace t3d::cpu {
extern const UpdateKernels kUpdateKernelsV3;
constinit const UpdateKernels kUpdateKernelsV3 = v3::update_table();
}  // namespace t3d::cpu
#endif
