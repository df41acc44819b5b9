// Exact kernels for x86-64-v2; flags are set in src/CMakeLists.txt.
#define T3D_ISA v2
#include "ops/cpu/isa/update_table.hpp"

namespace t3d::cpu {
extern const UpdateKernels kUpdateKernelsV2;
constinit const UpdateKernels kUpdateKernelsV2 = v2::update_table();
}  // namespace t3d::cpu
