// Chooses the instruction set once, at first use.
#include "ops/cpu/kernels.hpp"

#include <cstdlib>
#include <string_view>

namespace t3d::cpu {

extern const Kernels kKernelsV2;

#if defined(__x86_64__)
extern const Kernels kKernelsV3;
extern const Kernels kKernelsV4;

namespace {

const Kernels& choose() {
  const char* wish = std::getenv("T3D_ISA");
  const std::string_view limit = wish != nullptr ? wish : "v4";
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v4 && limit != "v2" && limit != "v3") return kKernelsV4;
  if (v3 && limit != "v2") return kKernelsV3;
  return kKernelsV2;
}

}  // namespace
#else
namespace {
const Kernels& choose() { return kKernelsV2; }
}  // namespace
#endif

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace t3d::cpu
