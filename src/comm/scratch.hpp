// Receive buffers of reductions. They are kept and used again: fresh pages cost more than the
// transfer that fills them. A buffer whose operation was given up stays out of use, because a late
// message may still be written into it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "core/types.hpp"

namespace t3d {

class ScratchPool {
 public:
  struct Free {
    void operator()(std::byte* data) const { std::free(data); }
  };
  struct Buffer {
    std::unique_ptr<std::byte[], Free> data;
    index_t bytes = 0;
  };

  [[nodiscard]] Buffer take(index_t bytes) {
    const auto fits = std::find_if(free_.begin(), free_.end(),
                                   [&](const Buffer& buffer) { return buffer.bytes >= bytes; });
    if (fits != free_.end()) {
      Buffer buffer = std::move(*fits);
      free_.erase(fits);
      return buffer;
    }
    const index_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, static_cast<std::size_t>(rounded));
    if (data == nullptr) throw std::bad_alloc();
    return {std::unique_ptr<std::byte[], Free>(static_cast<std::byte*>(data)), rounded};
  }

  void give_back(Buffer buffer) {
    if (free_.size() == kKept) free_.erase(free_.begin());
    free_.push_back(std::move(buffer));
  }

  void bury(Buffer buffer) { buried_.push_back(std::move(buffer)); }

 private:
  static constexpr index_t kAlignment = 4096;
  static constexpr std::size_t kKept = 8;
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
