// Exact kernels for x86-64-v4; flags are set in src/CMakeLists.txt.
#if defined(__x86_64__)
#define T3D_ISA v4
#include "ops/cpu/isa/update_table.hpp"

namespace t3d::cpu {
extern const UpdateKernels kUpdateKernelsV4;
constinit const UpdateKernels kUpdateKernelsV4 = v4::update_table();
}  // namespace t3d::cpu
#endif
