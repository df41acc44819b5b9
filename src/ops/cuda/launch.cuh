// Launching kernels (the content is shared with comm, which may not include ops).
#pragma once
#include "device/cuda/launch.cuh"  // IWYU pragma: export
