// Matmuls on the device with operands from the common cases: every matrix in memory of exactly its
// size, so that one number too many read or written shows (guard pages, compute-sanitizer).
#pragma once
#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "ops/case_list.hpp"
#include "ops/cuda/engines.hpp"

namespace t3d::test {

/// A host matrix on the device, `offset` numbers behind the start of its memory.
class OnDevice {
 public:
  OnDevice(ConstTensorView host, index_t offset) : host_(host) {
    const index_t size = size_of(host.dtype);
    bytes_ = host.empty() ? 0 : ((host.rows - 1) * host.ld + host.cols) * size;
    cuda::check(cudaMalloc(&memory_, static_cast<std::size_t>(bytes_ + offset * size)), "memory");
    data_ = static_cast<std::byte*>(memory_) + offset * size;
    copy(data_, host.data);
  }
  ~OnDevice() { cudaFree(memory_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

  [[nodiscard]] TensorView view() const {
    return {data_, host_.dtype, host_.rows, host_.cols, host_.ld};
  }
  void download(TensorView to) const { copy(to.data, data_); }

 private:
  void copy(void* to, const void* from) const {
    if (bytes_ == 0) return;
    cuda::check(cudaMemcpy(to, from, static_cast<std::size_t>(bytes_), cudaMemcpyDefault),
                "a copy");
  }

  ConstTensorView host_;
  void* memory_ = nullptr;
  std::byte* data_ = nullptr;
  index_t bytes_ = 0;
};

/// One matmul of a case: its buffers on the host, and the same on the device.
struct GemmOnDevice {
  std::vector<ops_test::Buffer> host;
  std::vector<std::unique_ptr<OnDevice>> device;
  GemmArgs args;

  GemmOnDevice(const ops_test::OpCase& op, const ops_test::GemmShape& shape, index_t pad,
               index_t offset)
      : host(op.make_buffers(pad)) {
    for (ops_test::Buffer& buffer : host)
      device.push_back(std::make_unique<OnDevice>(buffer.view(), offset));
    args = {device[0]->view(),
            device[1]->view(),
            device[2]->view(),
            shape.transpose_a,
            shape.transpose_b,
            shape.accumulate,
            {}};
    if (shape.bias) args.bias = device[3]->view();
  }
  /// Brings C back.
  ops_test::Buffer& result() {
    device[2]->download(host[2].view());
    return host[2];
  }
};

/// The device with one queue.
struct Gpu {
  std::unique_ptr<Device> device = make_cuda_device(0);
  std::unique_ptr<Queue> queue = device->make_queue();
};

inline ops_test::GemmShape with_flags(index_t m, index_t n, index_t k, int flags) {
  return {m, n, k, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0};
}

}  // namespace t3d::test
