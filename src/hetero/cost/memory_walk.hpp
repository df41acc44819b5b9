// MemoryWalk: what a device's account would be after requests of these sizes, in integers. Pieces
// are rounded as the device rounds them and counted by size, since a freed block serves only
// requests of its own size. A piece may stand for several alike (layers), so that a walk through
// few layers accounts for many. Internal to `hetero`.
#pragma once
#include <array>
#include <vector>

#include "device/device.hpp"

namespace t3d {

class MemoryWalk {
 public:
  /// A tensor's memory while it lives; move-only, empty by default.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept { *this = std::move(other); }
    Held& operator=(Held&& other) noexcept;
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
    ~Held() { reset(); }
    [[nodiscard]] bool there() const { return walk_ != nullptr; }
    void reset() noexcept;
    /// From now on it stands for `times` pieces; nothing where it is empty.
    void set_times(index_t times);

   private:
    friend class MemoryWalk;
    Held(MemoryWalk& walk, std::size_t size, MemoryKind kind)
        : walk_(&walk), size_(size), kind_(kind) {}
    MemoryWalk* walk_ = nullptr;
    std::size_t size_ = 0;  // in sizes_
    MemoryKind kind_ = MemoryKind::workspace;
    index_t times_ = 0;
  };

  MemoryWalk() = default;
  MemoryWalk(const MemoryWalk&) = delete;
  MemoryWalk& operator=(const MemoryWalk&) = delete;

  [[nodiscard]] Held take(MemoryKind kind, index_t bytes, index_t times = 1);
  /// As MemoryAccount's of the same names.
  [[nodiscard]] index_t live_peak() const { return live_peak_; }
  [[nodiscard]] const std::array<index_t, kMemoryKinds>& at_peak() const { return at_peak_; }
  [[nodiscard]] index_t reserved_peak() const;

 private:
  struct Size {
    index_t bytes = 0, now = 0, most = 0;  // most: at one moment
  };
  void change(std::size_t size, MemoryKind kind, index_t times);

  std::vector<Size> sizes_;
  index_t live_ = 0, live_peak_ = 0;
  std::array<index_t, kMemoryKinds> by_kind_{}, at_peak_{};
};

}  // namespace t3d
