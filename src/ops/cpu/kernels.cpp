// Chooses the instruction set once, at first use.
#include "ops/cpu/kernels.hpp"

#include <cstdlib>
#include <string_view>

namespace t3d::cpu {

extern const Kernels kKernelsV2;

#if defined(__x86_64__)
extern const Kernels kKernelsV3;
extern const Kernels kKernelsV4;

std::vector<const Kernels*> all_kernels() {
  std::vector<const Kernels*> all{&kKernelsV2};
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) all.push_back(&kKernelsV3);
  if (v4) all.push_back(&kKernelsV4);
  return all;
}
#else
std::vector<const Kernels*> all_kernels() { return {&kKernelsV2}; }
#endif

namespace {

const Kernels& choose() {
  const std::vector<const Kernels*> all = all_kernels();
  const char* wish = std::getenv("T3D_ISA");
  for (const Kernels* one : all)
    if (wish != nullptr && std::string_view(wish) == one->isa) return *one;
  return *all.back();
}

}  // namespace

const Kernels& kernels() {
  static const Kernels& chosen = choose();
  return chosen;
}

}  // namespace t3d::cpu
