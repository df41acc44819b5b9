// HostImage: buffers of the device as the host sees them. Where the host can address the device
// they are the buffers themselves; else copies, brought up to date on demand.
#pragma once
#include <algorithm>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "tensor3d/context.hpp"

namespace t3d {

/// Gives page-locked memory back to the device that it came from.
struct HostRelease {
  Device* device = nullptr;
  template <class T>
  void operator()(T* data) const {
    device->host_release(data);
  }
};

/// Page-locked memory for `count` numbers, zero.
template <class T>
std::unique_ptr<T[], HostRelease> host_array(Device& device, index_t count) {
  auto* data = static_cast<T*>(device.host_allocate(count * static_cast<index_t>(sizeof(T))));
  std::fill_n(data, count, T{});
  return {data, HostRelease{&device}};
}

class HostImage {
 public:
  explicit HostImage(const Context& context) : context_(context) {}

  /// Host views of `shards` (contiguous, on the device); the same memory at every call.
  [[nodiscard]] std::vector<TensorView> of(const std::vector<TensorView>& shards);
  /// Device to host, everything that of() was asked for. Waits.
  void download();
  /// Host to device.
  void upload();

 private:
  struct Copy {
    TensorView device;
    std::unique_ptr<std::byte[], HostRelease> host;
  };
  TensorView host_of(TensorView shard);

  const Context& context_;
  std::deque<Copy> copies_;
};

}  // namespace t3d
