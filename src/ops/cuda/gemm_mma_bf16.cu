// The tensor-core matmul of bf16: one file per format, because each takes long to compile.
#include "ops/cuda/gemm_mma.cuh"

namespace t3d::cuda {

void launch_mma_bf16(Queue& queue, const GemmArgs& args, const GemmPlan& plan,
                     const GemmProblem& problem) {
  launch_mma<Bf16>(queue, args, plan, problem);
}

}  // namespace t3d::cuda
