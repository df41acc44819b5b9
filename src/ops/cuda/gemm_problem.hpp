// Arguments of a matmul kernel, and the functions by which gemm_native.cpp launches them.
#pragma once
#include "ops/cuda/gemm_plan.hpp"
#include "ops/ops.hpp"

namespace t3d::cuda {

/// C = sum * scale_a * scale_b (+ bias) (+ C), rounded once. Null pointers are left out.
struct GemmOutput {
  void* c = nullptr;
  index_t ldc = 0;
  const float* bias = nullptr;
  const float* scale_a = nullptr;  // one number each, on the device
  const float* scale_b = nullptr;
  bool fp32 = false;  // else the operands' dtype
  bool accumulate = false;
  bool vector = false;  // 16-byte accesses are possible
};

struct GemmProblem {
  const void* a = nullptr;
  const void* b = nullptr;
  index_t lda = 0, ldb = 0;
  int m = 0, n = 0, k = 0;
  int depth_per_split = 0;   // slice blockIdx.z of K
  index_t split_stride = 0;  // elements of C between the results of two slices
  GemmOutput out;
};

/// gemm_mma_*.cu: the operands are bf16, fp16, or fp32 that is rounded to tf32.
void launch_mma_bf16(Queue& queue, const GemmArgs& args, const GemmPlan& plan,
                     const GemmProblem& problem);
void launch_mma_f16(Queue& queue, const GemmArgs& args, const GemmPlan& plan,
                    const GemmProblem& problem);
void launch_mma_tf32(Queue& queue, const GemmArgs& args, const GemmPlan& plan,
                     const GemmProblem& problem);
/// gemm_simt.cu
void launch_simt(Queue& queue, const GemmArgs& args, const GemmPlan& plan,
                 const GemmProblem& problem);
/// gemm_split.cu: C from the partial sums [splits, m, n], added in the order of the slices.
void launch_split_sum(Queue& queue, DType c, int splits, int m, int n, const float* partial,
                      const GemmOutput& out);

}  // namespace t3d::cuda
