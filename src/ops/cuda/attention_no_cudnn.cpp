// Stands in for attention_cudnn.cpp where there is no cuDNN.
#include "ops/cuda/engines.hpp"

namespace t3d::cuda {

AttentionEngines make_library_attention_engines(Device&) { return {}; }

std::string attention_library_version() { return "none"; }

}  // namespace t3d::cuda
