// The data movement of the verbs, submitted to one stream. Each returns the scratch memory that
// must stay until the verb has finished.
#pragma once
#include <span>

#include "comm/nccl/handle.hpp"
#include "comm/nccl/nccl.hpp"
#include "device/cuda/cuda_queue.hpp"

namespace t3d::nccl {

/// Who takes part, and where. `comm` is null where `size` is 1.
struct Lane {
  ncclComm_t comm = nullptr;
  int rank = 0, size = 1;
  cuda::CudaQueue& queue;
  Device& device;
  const NcclOptions& options;
};

/// Equal counts: NCCL's all-gather. Nearly equal ones: the same over slots of the largest count, in
/// scratch memory. Others: everybody's part to everybody, exactly.
[[nodiscard]] Tensor all_gather(const Lane& lane, ConstTensorView part, TensorView whole,
                                std::span<const index_t> counts);
[[nodiscard]] Tensor reduce_scatter(const Lane& lane, ReduceOp op, ConstTensorView whole,
                                    TensorView part, std::span<const index_t> counts);
[[nodiscard]] std::vector<Tensor> all_reduce(const Lane& lane, TensorView x, ReduceOp op);
void broadcast(const Lane& lane, TensorView x, int root);
/// `own` are those to oneself (messages_to_self), which are copied.
void exchange(const Lane& lane, std::span<const Exchange> messages, std::span<const Exchange> own);

}  // namespace t3d::nccl
