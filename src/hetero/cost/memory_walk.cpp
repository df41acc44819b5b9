#include "hetero/cost/memory_walk.hpp"

#include <algorithm>
#include <utility>

namespace t3d {

MemoryWalk::Held& MemoryWalk::Held::operator=(Held&& other) noexcept {
  if (this == &other) return *this;
  reset();
  walk_ = std::exchange(other.walk_, nullptr);
  size_ = other.size_;
  kind_ = other.kind_;
  times_ = std::exchange(other.times_, 0);
  return *this;
}

void MemoryWalk::Held::reset() noexcept {
  if (walk_ != nullptr) walk_->change(size_, kind_, -times_);
  walk_ = nullptr;
  times_ = 0;
}

void MemoryWalk::Held::set_times(index_t times) {
  if (walk_ == nullptr) return;
  walk_->change(size_, kind_, times - times_);
  times_ = times;
}

MemoryWalk::Held MemoryWalk::take(MemoryKind kind, index_t bytes, index_t times) {
  const index_t size = block_size(bytes);
  std::size_t at = 0;
  while (at < sizes_.size() && sizes_[at].bytes != size) ++at;
  if (at == sizes_.size()) sizes_.push_back({size, 0, 0});
  Held held(*this, at, kind);
  held.set_times(times);
  return held;
}

void MemoryWalk::change(std::size_t size, MemoryKind kind, index_t times) {
  Size& entry = sizes_[size];
  entry.now += times;
  entry.most = std::max(entry.most, entry.now);
  live_ += times * entry.bytes;
  by_kind_[static_cast<std::size_t>(kind)] += times * entry.bytes;
  if (live_ <= live_peak_) return;
  live_peak_ = live_;
  at_peak_ = by_kind_;
}

// Every size at its own highest moment, unless the device gives unused blocks back before.
index_t MemoryWalk::reserved_peak() const {
  index_t all = 0;
  for (const Size& size : sizes_) all += size.bytes * size.most;
  return std::min(all, live_peak_ + live_peak_ / 2 + Device::kKeptBytes);
}

}  // namespace t3d
