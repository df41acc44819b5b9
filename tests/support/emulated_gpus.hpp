// What the emulation of GPUs shows to a test, by its environment (support/cuda_emulation).
#pragma once
#include <cstdlib>
#include <string>

namespace t3d::test {

/// As many GPUs as this from now on; a machine with real ones has what it has.
inline void show_gpus(int count) { setenv("T3D_EMULATED_GPUS", std::to_string(count).c_str(), 1); }

/// The same, with a clock.
inline void show_timed_gpus(int count) {
  show_gpus(count);
  setenv("T3D_EMULATED_TIME", "1", 1);
}

}  // namespace t3d::test
