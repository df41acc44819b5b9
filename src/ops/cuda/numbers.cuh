// Numbers in kernels (the content is shared with comm, which may not include ops).
#pragma once
#include "device/cuda/numbers.cuh"  // IWYU pragma: export
