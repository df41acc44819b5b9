// A CUDA stream as a Queue, and the check that every runtime call passes through.
#pragma once
#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "core/error.hpp"
#include "device/queue.hpp"

namespace t3d::cuda {

/// Throws Error: unavailable where there is no device, no driver or no memory, else internal.
void check(cudaError_t status, std::string_view what);

/// In order of submission; nothing here blocks the host but synchronize().
class CudaQueue final : public Queue {
 public:
  CudaQueue();
  ~CudaQueue() override;
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  void synchronize() override;
  [[nodiscard]] std::unique_ptr<Marker> mark() override;
  [[nodiscard]] std::unique_ptr<QueueTimer> make_timer() override;
  void record(int shape, const std::function<void()>& body) override;
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  /// Work submitted here from now on comes after all that `other` holds now.
  void wait_for(cudaStream_t other);

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::map<int, cudaGraphExec_t> graphs_;  // by shape
  bool recording_ = false;
};

/// The stream of a queue made by a CUDA device.
[[nodiscard]] inline cudaStream_t stream_of(Queue& queue) {
  auto* cuda = dynamic_cast<CudaQueue*>(&queue);
  T3D_CHECK(cuda != nullptr, "this queue belongs to another device");
  return cuda->stream();
}

}  // namespace t3d::cuda
