#include "device/device.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "core/error.hpp"

namespace t3d {

index_t block_size(index_t bytes) {
  if (bytes <= 4096) return std::max<index_t>(64, (bytes + 63) / 64 * 64);
  index_t power = 4096;
  while (power * 2 <= bytes) power *= 2;
  const index_t step = std::max<index_t>(4096, power / 64);
  return (bytes + step - 1) / step * step;
}

std::string_view name_of(MemoryKind kind) {
  constexpr std::array<std::string_view, kMemoryKinds> names{
      "weights", "optimizer", "gradients", "activations", "gathered", "workspace"};
  return names[static_cast<std::size_t>(kind)];
}

void* Device::host_allocate(index_t bytes) {
  void* data = std::aligned_alloc(64, static_cast<std::size_t>((bytes + 63) / 64 * 64));
  if (data == nullptr)
    throw_error(ExitCode::unavailable, "out of host memory: asked for {} MiB", bytes >> 20);
  return data;
}

void Device::host_release(void* data) noexcept { std::free(data); }

void* Device::allocate(index_t bytes, MemoryKind kind) {
  const index_t size = block_size(bytes);
  void* data = nullptr;
  Blocks& blocks = cache_[size];
  blocks.last_use = ++requests_;
  if (!blocks.free.empty()) {
    data = blocks.free.back();
    blocks.free.pop_back();
  } else {
    // Room for its return now: release() may run while memory is short, and must not fail.
    if (blocks.free.capacity() <= blocks.made) blocks.free.reserve(2 * blocks.made + 1);
    data = new_block(size);
    if (data == nullptr) {
      const auto most = std::max_element(memory_.by_kind.begin(), memory_.by_kind.end());
      throw_error(ExitCode::unavailable,
                  "out of memory on {}: asked for {} MiB for {} beside {} MiB in use; the largest "
                  "consumer is {} with {} MiB",
                  name(), size >> 20, name_of(kind), memory_.live >> 20,
                  name_of(static_cast<MemoryKind>(most - memory_.by_kind.begin())), *most >> 20);
    }
    ++blocks.made;
  }
  memory_.live += size;
  memory_.by_kind[static_cast<std::size_t>(kind)] += size;
  if (memory_.live > memory_.live_peak) {
    memory_.live_peak = memory_.live;
    memory_.at_peak = memory_.by_kind;
  }
  return data;
}

void Device::release(void* data, index_t bytes, MemoryKind kind) noexcept {
  const index_t size = block_size(bytes);
  memory_.live -= size;
  memory_.by_kind[static_cast<std::size_t>(kind)] -= size;
  cache_.find(size)->second.free.push_back(data);
}

void* Device::new_block(index_t size) {
  if (void* data = block_from_pool(size)) return data;
  if (holds_ == 0) make_room(size);
  void* data = system_allocate(size);
  if (data == nullptr && holds_ == 0) {
    trim();
    data = system_allocate(size);
  }
  if (data == nullptr) return nullptr;
  memory_.reserved += size;
  memory_.reserved_peak = std::max(memory_.reserved_peak, memory_.reserved);
  return data;
}

void* Device::block_from_pool(index_t size) {
  if (!divisible(size)) return nullptr;
  if (void* data = pool_.take(size)) return data;
  const std::vector<MemoryRange> parts = pool_.take_ranges(size);
  if (parts.empty()) return nullptr;
  void* data = join(parts);
  if (data != nullptr) return data;
  memory_.reserved -= size;  // fresh memory takes their place
  for (const MemoryRange& part : parts) release_range(part);
  return nullptr;
}

void Device::drop_free(Blocks& blocks) {
  blocks.free.pop_back();
  --blocks.made;
}

void Device::give_back(index_t size, Blocks& blocks) {
  system_release(blocks.free.back(), size);
  drop_free(blocks);
  memory_.reserved -= size;
}

void Device::make_room(index_t bytes) {
  const index_t peak = std::max(memory_.live_peak, memory_.live + bytes);
  const index_t bound = peak + peak / 2 + kKeptBytes;
  if (memory_.reserved + bytes > bound) release_pool();
  while (memory_.reserved + bytes > bound) {
    auto oldest = cache_.end();
    for (auto at = cache_.begin(); at != cache_.end(); ++at)
      if (!at->second.free.empty() &&
          (oldest == cache_.end() || at->second.last_use < oldest->second.last_use))
        oldest = at;
    if (oldest == cache_.end()) return;
    while (!oldest->second.free.empty() && memory_.reserved + bytes > bound)
      give_back(oldest->first, oldest->second);
  }
}

void Device::trim() {
  release_pool();
  for (auto& [size, blocks] : cache_)
    while (!blocks.free.empty()) give_back(size, blocks);
}

void Device::restart_peaks() {
  memory_.live_peak = memory_.live;
  memory_.reserved_peak = memory_.reserved;
  memory_.at_peak = memory_.by_kind;
}

void Device::recycle() {
  T3D_CHECK(holds_ == 0, "a recording may still use blocks that are free");
  for (auto& [size, blocks] : cache_)
    while (!blocks.free.empty()) {
      if (divisible(size)) {
        pool_.add(blocks.free.back(), size);  // may throw: the block is still in the list
        drop_free(blocks);
      } else {
        give_back(size, blocks);
      }
    }
}

void Device::release_pool() {
  memory_.reserved -= pool_.bytes();
  pool_.clear([this](MemoryRange range) { release_range(range); });
}

Tensor::Tensor(Device& device, DType dtype, index_t rows, index_t cols, MemoryKind kind)
    : device_(&device), dtype_(dtype), rows_(rows), cols_(cols), kind_(kind) {
  T3D_CHECK(rows >= 0 && cols >= 0, "tensor of {} x {}", rows, cols);
  data_ = device.allocate(view().bytes(), kind);
}

Tensor::Tensor(Tensor&& other) noexcept { *this = std::move(other); }

Tensor& Tensor::operator=(Tensor&& other) noexcept {
  if (this == &other) return *this;
  reset();
  device_ = std::exchange(other.device_, nullptr);
  data_ = std::exchange(other.data_, nullptr);
  dtype_ = other.dtype_;
  rows_ = std::exchange(other.rows_, 0);
  cols_ = std::exchange(other.cols_, 0);
  kind_ = other.kind_;
  return *this;
}

Tensor::~Tensor() { reset(); }

void Tensor::reset() noexcept {
  if (device_ != nullptr) device_->release(data_, view().bytes(), kind_);
  device_ = nullptr;
  data_ = nullptr;
  rows_ = 0;
  cols_ = 0;
}

}  // namespace t3d
