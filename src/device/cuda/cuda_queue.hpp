// A CUDA stream as a Queue, and the check that every runtime call passes through.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "device/queue.hpp"

namespace t3d::cuda {

/// Throws Error: unavailable where there is no device, no driver or no memory, else internal.
void check(cudaError_t status, std::string_view what);

struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using EventPtr = std::unique_ptr<CUevent_st, DestroyEvent>;
/// One that is given a time.
[[nodiscard]] EventPtr make_timed_event();

/// In order of submission; nothing here blocks the host but synchronize() and read_clock().
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
  [[nodiscard]] std::optional<DeviceTime> read_clock() override;
  void stop_clock() override { origin_.reset(); }
  [[nodiscard]] bool clock_runs() const { return origin_ != nullptr; }
  /// By the running clock, of a timed event of any stream that has been reached. Times are single
  /// precision there: in steps of 1 us from 8 s on, of 8 us from a minute on.
  [[nodiscard]] std::int64_t time_of(cudaEvent_t event) const;
  [[nodiscard]] cudaStream_t stream() const { return stream_; }
  /// Work submitted here from now on comes after all that `other` holds now.
  void wait_for(cudaStream_t other);

 private:
  cudaStream_t stream_ = nullptr;
  cudaEvent_t event_ = nullptr;
  std::map<int, cudaGraphExec_t> graphs_;  // by shape
  bool recording_ = false;
  EventPtr origin_;  // of the clock, while it runs
};

/// The stream of a queue made by a CUDA device.
[[nodiscard]] inline cudaStream_t stream_of(Queue& queue) {
  auto* cuda = dynamic_cast<CudaQueue*>(&queue);
  T3D_CHECK(cuda != nullptr, "this queue belongs to another device");
  return cuda->stream();
}

}  // namespace t3d::cuda
