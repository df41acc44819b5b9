// Host memory. Blocks of 1 MiB and more ask for huge pages: first touch of 4 KiB pages costs more
// than a memory-bound kernel's pass over them.
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>

#include "device/device.hpp"
#include "device/host_limits.hpp"

namespace t3d {
namespace {

constexpr index_t kHugePage = index_t{2} << 20;

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
    const bool huge = bytes >= kHugePage;
    const index_t alignment = huge ? kHugePage : 64;
    const index_t size = (bytes + 63) / 64 * 64;
    void* data = nullptr;
    if (posix_memalign(&data, static_cast<std::size_t>(alignment),
                       static_cast<std::size_t>(size)) != 0)
      return nullptr;
    // Whole ones only: the rest of a last one would be resident and used by nobody.
    const index_t whole = size / kHugePage * kHugePage;
    if (huge) madvise(data, static_cast<std::size_t>(whole), MADV_HUGEPAGE);
    return data;
  }
  void system_release(void* data, index_t) noexcept override { std::free(data); }
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
