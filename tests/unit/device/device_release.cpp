// Memory is given back while an error unwinds, also where that error is that there is no memory.
#include <cstdlib>
#include <new>
#include <vector>

#include "device/device.hpp"
#include "support/catch.hpp"

namespace {
thread_local bool no_memory = false;
}

void* operator new(std::size_t bytes) {
  void* data = no_memory ? nullptr : std::malloc(bytes > 0 ? bytes : 1);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }

namespace t3d {

TEST_CASE("blocks go back to the device when there is no memory left") {
  constexpr int kBlocks = 100;
  const auto device = make_cpu_device();
  std::vector<Tensor> tensors;
  for (int n = 0; n < kBlocks; ++n)
    tensors.emplace_back(*device, DType::f32, 1, 100, MemoryKind::workspace);
  device->trim();  // nothing is free yet: must not forget what is in use
  no_memory = true;
  for (Tensor& tensor : tensors) tensor.reset();  // ends the process if it allocates
  no_memory = false;
  CHECK(device->memory().live == 0);

  const index_t reserved = device->memory().reserved;
  for (Tensor& tensor : tensors) tensor = Tensor(*device, DType::f32, 1, 100, MemoryKind::weights);
  CHECK(device->memory().reserved == reserved);  // the same blocks again
  tensors.clear();
  device->trim();
  CHECK(device->memory().reserved == 0);
}

}  // namespace t3d
