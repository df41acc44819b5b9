// Stands in for gemm_library.cpp where there is no cuBLASLt.
#include "ops/cuda/engines.hpp"

namespace t3d::cuda {

GemmEngines make_library_gemm_engines(Device&, const EngineOptions&) { return {}; }

std::string gemm_library_version() { return "none"; }

}  // namespace t3d::cuda
