// Which of a GPU's ways to multiply and to attend may be used (ops/cuda/engines.hpp), in words that
// need no GPU to be said: configuration and registry use them on machines without one, too.
#pragma once
#include <string>

#include "core/choices.hpp"

namespace t3d {

struct EngineOptions {
  EngineRule gemm = EngineRule::automatic, attention = EngineRule::automatic;
  bool tf32 = false;       // fp32 matmuls with operands rounded to tf32
  bool fp8 = false;                // bf16/fp16 matmuls with operands in fp8, per-tensor scales
  bool tune = true;                // time the engines per shape; else always the first usable one
  std::string cache_file;          // engine choices are read from it; empty = none
};

}  // namespace t3d
