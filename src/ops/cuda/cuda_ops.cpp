#include "ops/cuda/cuda_ops.hpp"

#include <utility>

#include "ops/cuda/make.hpp"

namespace t3d {
namespace cuda {

CudaOps::CudaOps(Device& device, EngineOptions options)
    : device_(device), engines_(std::make_unique<Engines>(device, std::move(options))) {}

CudaOps::~CudaOps() = default;

void CudaOps::gemm(Queue& queue, const GemmArgs& args) {
  args.rows_alone ? multiply_rows(queue, args) : engines_->gemm(queue, args);
}

void CudaOps::attention_forward(Queue& queue, const AttentionArgs& args, TensorView out,
                                TensorView lse) {
  engines_->attention_forward(queue, args, out, lse);
}

void CudaOps::attention_backward(Queue& queue, const AttentionArgs& args, ConstTensorView out,
                                 ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  engines_->attention_backward(queue, args, out, lse, dout, dqkv);
}

}  // namespace cuda

std::unique_ptr<Ops> make_cuda_ops(Device& device, const EngineOptions& options) {
  return std::make_unique<cuda::CudaOps>(device, options);
}

}  // namespace t3d
