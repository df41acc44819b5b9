// Receive buffers of reductions, and staging memory of devices. They are kept and used again: fresh
// pages cost more than the transfer that fills them. A buffer whose operation was given up stays
// out of use, because a late message may still be written into it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <vector>

#include "core/types.hpp"

namespace t3d {

class ScratchPool {
 public:
  using Allocate = std::function<void*(index_t bytes)>;
  using Release = std::function<void(void*)>;
  struct Free {
    Release release;
    void operator()(std::byte* data) const { release(data); }
  };
  struct Buffer {
    std::unique_ptr<std::byte[], Free> data;
    index_t bytes = 0;
  };

  /// Pages of the host, the last eight of them kept.
  ScratchPool()
      : ScratchPool(
            host_pages, [](void* data) { std::free(data); }, 8) {}
  ScratchPool(Allocate allocate, Release release, std::size_t kept)
      : allocate_(std::move(allocate)), release_(std::move(release)), kept_(kept) {}

  [[nodiscard]] Buffer take(index_t bytes) {
    const auto unfit = [&](const Buffer& buffer) { return buffer.bytes < bytes; };
    const auto fits =
        std::min_element(free_.begin(), free_.end(), [&](const Buffer& a, const Buffer& b) {
          return unfit(a) == unfit(b) ? a.bytes < b.bytes : unfit(b);
        });
    if (fits != free_.end() && !unfit(*fits)) {
      Buffer buffer = std::move(*fits);
      free_.erase(fits);
      return buffer;
    }
    const index_t rounded = (std::max<index_t>(bytes, 1) + kPage - 1) / kPage * kPage;
    auto* data = static_cast<std::byte*>(allocate_(rounded));
    return {std::unique_ptr<std::byte[], Free>(data, Free{release_}), rounded};
  }

  void give_back(Buffer buffer) {
    if (free_.size() == kept_) free_.erase(free_.begin());
    free_.push_back(std::move(buffer));
  }

  void bury(Buffer buffer) { buried_.push_back(std::move(buffer)); }

 private:
  static constexpr index_t kPage = 4096;
  static void* host_pages(index_t bytes) {
    void* data = std::aligned_alloc(kPage, static_cast<std::size_t>(bytes));
    if (data == nullptr) throw std::bad_alloc();
    return data;
  }

  Allocate allocate_;
  Release release_;
  std::size_t kept_;
  std::vector<Buffer> free_, buried_;
};

/// A buffer for the life of one operation; `done()` says that nothing writes into it any more.
class Scratch {
 public:
  Scratch(ScratchPool& pool, index_t bytes) : pool_(&pool), buffer_(pool.take(bytes)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (buffer_.data != nullptr) pool_->bury(std::move(buffer_));
  }
  [[nodiscard]] std::byte* data() const { return buffer_.data.get(); }
  void done() {
    if (buffer_.data != nullptr) pool_->give_back(std::move(buffer_));
  }

 private:
  ScratchPool* pool_;
  ScratchPool::Buffer buffer_;
};

}  // namespace t3d
