// The memory account and the reuse of blocks.
#include "device/device.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "support/catch.hpp"

namespace t3d {
namespace {

TEST_CASE("the account follows what is allocated, by kind and at the peak", "[device]") {
  const auto device = make_cpu_device();
  const MemoryAccount& memory = device->memory();
  const auto kind = [](MemoryKind which) { return static_cast<std::size_t>(which); };
  {
    const Tensor weights(*device, DType::f32, 100, 100, MemoryKind::weights);
    CHECK(memory.live >= 40000);
    CHECK(memory.live < 41000 + 4096);
    CHECK(memory.by_kind[kind(MemoryKind::weights)] == memory.live);
    const index_t before = memory.live;
    {
      const Tensor activations(*device, DType::bf16, 1000, 100, MemoryKind::activations);
      CHECK(memory.live >= before + 200000);
      CHECK(memory.live == memory.live_peak);
    }
    CHECK(memory.live == before);
    CHECK(memory.live_peak >= before + 200000);
    CHECK(memory.at_peak[kind(MemoryKind::activations)] >= 200000);
    CHECK(memory.at_peak[kind(MemoryKind::weights)] == before);
    CHECK(memory.by_kind[kind(MemoryKind::activations)] == 0);
  }
  CHECK(memory.live == 0);
  CHECK(memory.reserved == memory.reserved_peak);  // kept for the next step
  device->trim();
  CHECK(memory.reserved == 0);
  device->restart_peaks();
  CHECK(memory.live_peak == 0);
  CHECK(memory.reserved_peak == 0);
  CHECK(memory.at_peak[kind(MemoryKind::weights)] == 0);
}

TEST_CASE("a freed block serves the next request of its size", "[device]") {
  const auto device = make_cpu_device();
  void* const first = device->allocate(100000, MemoryKind::workspace);
  device->release(first, 100000, MemoryKind::workspace);
  void* const second = device->allocate(99999, MemoryKind::gradients);
  CHECK(second == first);
  CHECK(reinterpret_cast<std::uintptr_t>(second) % 64 == 0);
  device->release(second, 99999, MemoryKind::gradients);
  CHECK(device->memory().live == 0);
}

TEST_CASE("40 changes of shapes do not grow memory", "[device]") {
  const auto device = make_dry_device();  // the same account, without the memory
  const MemoryAccount& memory = device->memory();
  constexpr index_t kMiB = index_t{1} << 20;
  const Tensor weights(*device, DType::f32, 1, 25 * kMiB, MemoryKind::weights);
  const auto bound = [&] { return memory.live_peak * 3 / 2 + Device::kKeptBytes; };
  for (index_t shape = 0; shape < 40; ++shape) {
    const index_t numbers = (20 + shape * 7 % 40) * kMiB / 4;
    index_t reserved = 0;
    for (int step = 0; step < 3; ++step) {
      {
        const Tensor a(*device, DType::f32, 1, numbers, MemoryKind::activations);
        const Tensor b(*device, DType::f32, 2, numbers - 9000, MemoryKind::activations);
      }
      const Tensor c(*device, DType::f32, 3, numbers / 2, MemoryKind::gathered);
      CHECK(memory.reserved <= bound());
      if (step > 0) CHECK(memory.reserved == reserved);  // every block was found
      reserved = memory.reserved;
    }
  }
  CHECK(memory.reserved <= bound());
  CHECK(memory.reserved_peak <= bound());
}

TEST_CASE("the longest unused blocks go first", "[device]") {
  const auto device = make_cpu_device();
  constexpr index_t kMiB = index_t{1} << 20;
  const auto use = [&](index_t bytes) {
    void* const data = device->allocate(bytes, MemoryKind::workspace);
    device->release(data, bytes, MemoryKind::workspace);
    return data;
  };
  (void)use(64 * kMiB);
  void* const kept = use(60 * kMiB);
  CHECK(device->memory().reserved == 124 * kMiB);
  (void)use(56 * kMiB);  // beyond 1.5 x 64 + 64 MiB
  CHECK(device->memory().reserved == 116 * kMiB);
  CHECK(use(60 * kMiB) == kept);
}

TEST_CASE("recycled memory serves other sizes, and the rest goes back", "[device]") {
  constexpr index_t kMiB = index_t{1} << 20;
  const auto device = make_cpu_device();
  const MemoryAccount& memory = device->memory();
  const auto bytes_of = [&](index_t mib) {
    return Tensor(*device, DType::f32, mib, kMiB / 4, MemoryKind::weights);
  };
  Tensor old_shape = bytes_of(12);
  const void* const first = old_shape.view().data;
  old_shape.reset();
  const index_t reserved = memory.reserved;
  device->recycle();
  CHECK(memory.reserved == reserved);
  {
    const Tensor a = bytes_of(5), b = bytes_of(3);
    CHECK(a.view().data == first);
    CHECK(memory.reserved == reserved);
    const Tensor c = bytes_of(5);  // no longer fits
    CHECK(memory.reserved == reserved + c.view().bytes());
    device->release_pool();
    CHECK(memory.reserved == memory.live);
  }
  // 5 + 3 + 5 MiB, which do not touch: together they make one block, with what they held.
  device->recycle();
  const index_t parts = memory.reserved;
  {
    const Tensor joined = bytes_of(13);
    CHECK(memory.reserved == parts);
    std::memset(joined.view().data, 1, static_cast<std::size_t>(joined.view().bytes()));
  }
  device->trim();
  CHECK(memory.reserved == 0);
}

TEST_CASE("blocks never overlap, whatever is recycled", "[device]") {
  struct Block {
    unsigned char* data;
    index_t bytes;
    unsigned char mark;
  };
  const auto device = make_cpu_device();
  std::mt19937 random(7);
  std::vector<Block> blocks;
  const auto drop = [&](std::size_t at) {
    const Block block = blocks[at];
    CHECK(block.data[0] == block.mark);
    CHECK(block.data[block.bytes - 1] == block.mark);
    CHECK(std::count(block.data, block.data + block.bytes, block.mark) == block.bytes);
    device->release(block.data, block.bytes, MemoryKind::workspace);
    blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(at));
  };
  for (int turn = 0; turn < 300; ++turn) {
    const auto bytes = static_cast<index_t>(random() % 3000000) + 1;
    auto* data = static_cast<unsigned char*>(device->allocate(bytes, MemoryKind::workspace));
    blocks.push_back({data, bytes, static_cast<unsigned char>(turn)});
    std::fill_n(data, bytes, blocks.back().mark);
    while (blocks.size() > 20) drop(random() % 20);
    if (turn % 13 == 12) device->recycle();
    if (turn % 50 == 49) device->release_pool();
  }
  while (!blocks.empty()) drop(0);
  device->recycle();
  device->trim();
  CHECK(device->memory().reserved == 0);
}

TEST_CASE("tensors move and can be given back early", "[device]") {
  const auto device = make_cpu_device();
  Tensor a(*device, DType::f32, 3, 5, MemoryKind::weights);
  std::memset(a.view().data, 0, 60);
  void* const data = a.view().data;
  Tensor b = std::move(a);
  CHECK(b.view().data == data);
  CHECK(b.rows() == 3);
  CHECK_FALSE(a.allocated());  // NOLINT(bugprone-use-after-move): what is being tested
  b = Tensor(*device, DType::f64, 1, 1, MemoryKind::weights);
  CHECK(b.dtype() == DType::f64);
  b.reset();
  CHECK(device->memory().live == 0);
  const Tensor empty(*device, DType::f32, 0, 7, MemoryKind::weights);
  CHECK(empty.allocated());
}

TEST_CASE("the dry device counts without memory", "[device]") {
  const auto device = make_dry_device();
  const Tensor huge(*device, DType::f32, index_t{1} << 20, index_t{1} << 20, MemoryKind::gathered);
  CHECK(huge.view().data != nullptr);
  CHECK(device->memory().live >= index_t{4} << 40);
  CHECK_FALSE(device->host_addressable());
}

TEST_CASE("too much is refused with the largest consumer", "[device]") {
  const auto device = make_cpu_device();
  const Tensor some(*device, DType::f32, 1000, 1000, MemoryKind::optimizer);
  try {
    (void)device->allocate(index_t{1} << 60, MemoryKind::weights);
    FAIL("an exbibyte was given");
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::unavailable);
    CHECK(std::string(error.what()).find("optimizer") != std::string::npos);
  }
}

}  // namespace
}  // namespace t3d
