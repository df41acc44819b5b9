// Host memory. Blocks of 2 MiB and more ask for huge pages: first touch of 4 KiB pages costs more
// than a memory-bound kernel's pass over them. Blocks of 256 KiB and more are mapped by themselves,
// so that any part of them can be used again or released.
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"
#include "device/device.hpp"
#include "device/host_limits.hpp"

namespace t3d {
namespace {

constexpr index_t kHugePage = index_t{2} << 20;
constexpr index_t kPage = 4096;  // blocks of more than this are multiples of it
constexpr index_t kMapped = index_t{1} << 18;

/// Whether one call moves a range of several maps; Linux does since 6.17.
bool moves_across_maps() {
  constexpr std::size_t kBytes = 2 * kPage;
  const auto map = [] {
    return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  void *const from = map(), *const to = map();
  if (from == MAP_FAILED || to == MAP_FAILED) return false;
  madvise(from, kPage, MADV_NOHUGEPAGE);  // now two maps
  const bool moves = mremap(from, kBytes, kBytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) != MAP_FAILED;
  if (!moves) munmap(from, kBytes);
  if (moves) munmap(to, kBytes);  // a failed call has already unmapped it
  return moves;
}

class CpuDevice final : public Device {
 public:
  ~CpuDevice() override { trim(); }
  [[nodiscard]] std::string_view name() const override { return "cpu"; }
  [[nodiscard]] bool host_addressable() const override { return true; }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override { return std::make_unique<Queue>(); }
  [[nodiscard]] Capacity capacity() const override {
    const HostMemory memory = host_memory();
    return {memory.total, memory.free};
  }
  void copy(void* to, const void* from, index_t bytes, Queue&) override {
    if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
  }

 protected:
  void* system_allocate(index_t bytes) override {
    if (!divisible(bytes)) return std::aligned_alloc(64, static_cast<std::size_t>(bytes));
    const bool huge = bytes >= kHugePage;
    // Room to begin at a huge page; what lies before and behind goes back at once.
    const auto spare = static_cast<std::uintptr_t>(huge ? kHugePage : 0);
    const auto size = static_cast<std::uintptr_t>(bytes);
    void* mapped =
        mmap(nullptr, size + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    if (!huge) return mapped;
    auto* const first = static_cast<char*>(mapped);
    const std::uintptr_t before = (spare - reinterpret_cast<std::uintptr_t>(first) % spare) % spare;
    if (before > 0) munmap(first, before);
    if (before < spare) munmap(first + before + size, spare - before);
    // Whole ones only: the rest of a last one would be resident and used by nobody.
    madvise(first + before, size / spare * spare, MADV_HUGEPAGE);
    return first + before;
  }
  void system_release(void* data, index_t bytes) noexcept override {
    divisible(bytes) ? release_range({static_cast<char*>(data), bytes}) : std::free(data);
  }
  [[nodiscard]] bool divisible(index_t bytes) const override {
    static const bool small_pages = sysconf(_SC_PAGESIZE) == kPage;
    return small_pages && bytes >= kMapped;
  }
  // The pages move to where the new block is; nothing is copied or touched.
  [[nodiscard]] void* join(const std::vector<MemoryRange>& parts) override {
    static const bool possible = moves_across_maps();
    if (!possible) return nullptr;
    index_t bytes = 0;
    for (const MemoryRange& part : parts) bytes += part.bytes;
    void* block = system_allocate(bytes);
    if (block == nullptr) return nullptr;
    auto* to = static_cast<char*>(block);
    for (const MemoryRange& part : parts) {
      const auto size = static_cast<std::size_t>(part.bytes);
      if (mremap(part.data, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to) == MAP_FAILED)
        throw_error(ExitCode::unavailable, "cannot move {} bytes of memory: {}", size,
                    std::strerror(errno));
      to += part.bytes;
    }
    return block;
  }
  void release_range(MemoryRange part) noexcept override {
    munmap(part.data, static_cast<std::size_t>(part.bytes));
  }
};

// Never dereferenced: aligned, non-null addresses that no allocation can have.
class DryDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "dry"; }
  [[nodiscard]] bool host_addressable() const override { return false; }
  [[nodiscard]] std::unique_ptr<Queue> make_queue() override { return std::make_unique<Queue>(); }
  void copy(void*, const void*, index_t, Queue&) override {}

 protected:
  void* system_allocate(index_t bytes) override {
    auto* data = reinterpret_cast<void*>(next_);  // NOLINT: an address, not memory
    next_ += static_cast<std::uintptr_t>((bytes + 4095) / 4096 * 4096);
    return data;
  }
  void system_release(void*, index_t) noexcept override {}

 private:
  std::uintptr_t next_ = std::uintptr_t{1} << 60;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device() { return std::make_unique<CpuDevice>(); }
std::unique_ptr<Device> make_dry_device() { return std::make_unique<DryDevice>(); }

}  // namespace t3d
