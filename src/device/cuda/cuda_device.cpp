// Device memory from cudaMalloc through the common cache of blocks. Host memory that is copied to
// the device goes through a ring of page-locked slots: a copy from pageable memory would stop the
// host until the stream is idle.
#include "device/cuda/cuda_device.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <list>

#include "device/cuda/cuda_queue.hpp"
#include "device/cuda/cuda_ranges.hpp"

namespace t3d {
namespace {

using cuda::check;
using cuda::CudaQueue;

class UploadRing {
 public:
  ~UploadRing() {
    for (Slot& slot : slots_) cudaFreeHost(slot.data);
  }
  /// A page-locked copy of `from`; done() must follow once its use is queued.
  const void* stage(const void* from, index_t bytes) {
    Slot& slot = free_slot(bytes);
    std::memcpy(slot.data, from, static_cast<std::size_t>(bytes));
    current_ = &slot;
    return slot.data;
  }
  void done(Queue& queue) { current_->used = queue.mark(); }

 private:
  struct Slot {
    void* data = nullptr;
    index_t bytes = 0;
    std::unique_ptr<Marker> used;
  };
  Slot& free_slot(index_t bytes) {
    const auto fits = std::find_if(slots_.begin(), slots_.end(), [&](const Slot& slot) {
      return slot.bytes >= bytes && slot.used->reached();
    });
    if (fits != slots_.end()) {
      slots_.splice(slots_.end(), slots_, fits);
      return slots_.back();
    }
    Slot slot;
    slot.bytes = std::max<index_t>(bytes, 4096);
    check(cudaMallocHost(&slot.data, static_cast<std::size_t>(slot.bytes)), "page-locked memory");
    slots_.push_back(std::move(slot));
    return slots_.back();
  }

  std::list<Slot> slots_;  // oldest use first
  Slot* current_ = nullptr;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int ordinal) : info_(cuda_info(ordinal)), ranges_(make_cuda_ranges()) {
    check(cudaSetDevice(ordinal), "choosing the GPU");
  }
  ~CudaDevice() override {
    cudaDeviceSynchronize();
    trim();
  }
  [[nodiscard]] std::string_view name() const override { return info_.name; }
  [[nodiscard]] bool host_addressable() const override { return false; }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override {
    return std::make_unique<CudaQueue>();
  }

  void copy(void* to, const void* from, index_t bytes, Queue& queue) override {
    if (bytes <= 0) return;
    const auto size = static_cast<std::size_t>(bytes);
    const bool upload = in_pageable_memory(from);
    if (upload) from = ring_.stage(from, bytes);
    check(cudaMemcpyAsync(to, from, size, cudaMemcpyDefault, cuda::stream_of(queue)), "a copy");
    if (upload) ring_.done(queue);
  }

  void* host_allocate(index_t bytes) override {
    void* data = nullptr;
    check(cudaMallocHost(&data, static_cast<std::size_t>(std::max<index_t>(bytes, 64))),
          "page-locked memory");
    return data;
  }
  void host_release(void* data) noexcept override { cudaFreeHost(data); }

  [[nodiscard]] Ranges* ranges() override { return ranges_.get(); }
  [[nodiscard]] Capacity capacity() const override {
    std::size_t free = 0, total = 0;
    check(cudaMemGetInfo(&free, &total), "asking for free memory");
    return {static_cast<index_t>(total), static_cast<index_t>(free)};
  }

 protected:
  void* system_allocate(index_t bytes) override {
    void* data = nullptr;
    if (cudaMalloc(&data, static_cast<std::size_t>(bytes)) == cudaSuccess) return data;
    cudaGetLastError();
    return nullptr;
  }
  void system_release(void* data, index_t) noexcept override { cudaFree(data); }

 private:
  static bool in_pageable_memory(const void* data) {
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, data), "asking where memory lies");
    return attributes.type == cudaMemoryTypeUnregistered;
  }

  CudaInfo info_;
  std::unique_ptr<Ranges> ranges_;
  UploadRing ring_;
};

int attribute(cudaDeviceAttr which, int ordinal) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, ordinal), "asking about the GPU");
  return value;
}

}  // namespace

int cuda_device_count() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaErrorInsufficientDriver) {
    cudaGetLastError();
    int driver = 0, runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver == 0) throw_error(ExitCode::unavailable, "there is no NVIDIA driver on this node");
    throw_error(ExitCode::unavailable,
                "the NVIDIA driver is too old: it speaks CUDA {}.{}, this program was built for "
                "{}.{}; load an older CUDA module and build again, or ask for a newer driver",
                driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  }
  check(status, "looking for GPUs");
  return count;
}

CudaInfo cuda_info(int ordinal) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, ordinal), "asking about the GPU");
  CudaInfo info;
  info.ordinal = ordinal;
  info.name = properties.name;
  for (const char byte : properties.uuid.bytes)
    info.identity += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  info.capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor, ordinal) +
                    attribute(cudaDevAttrComputeCapabilityMinor, ordinal);
  info.multiprocessors = attribute(cudaDevAttrMultiProcessorCount, ordinal);
  info.memory_bytes = static_cast<index_t>(properties.totalGlobalMem);
  check(cudaDriverGetVersion(&info.driver), "asking for the driver's version");
  check(cudaRuntimeGetVersion(&info.runtime), "asking for the runtime's version");
  return info;
}

std::unique_ptr<Device> make_cuda_device(int ordinal) {
  return std::make_unique<CudaDevice>(ordinal);
}

}  // namespace t3d
