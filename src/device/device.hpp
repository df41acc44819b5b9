// Device: where memory comes from, and the account of it. Freed blocks are kept by size and handed
// out again (a step repeats the same requests, and fresh pages cost more than the arithmetic that
// fills them), so `reserved` is what the operating system sees and `live` what the program uses.
//
// When shapes change, recycle() joins the free blocks into a pool that new sizes are cut from.
// Blocks that no request has asked for go back, the longest unused sizes first, when new memory is
// needed and `reserved` would exceed 1.5 x live_peak + kKeptBytes: that bound always holds. A step
// that finds all of its blocks never gives any back.
#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "device/page_pool.hpp"
#include "device/queue.hpp"
#include "device/tensor_view.hpp"

namespace t3d {

class Ranges;

/// What a block of memory is for; the memory report is by these.
enum class MemoryKind : int {
  weights,
  optimizer,
  gradients,
  activations,
  gathered,
  workspace,
  count_
};
inline constexpr int kMemoryKinds = static_cast<int>(MemoryKind::count_);
[[nodiscard]] std::string_view name_of(MemoryKind kind);

/// Bytes now and at the highest moment. `at_peak` is the split by kind when `live` peaked.
struct MemoryAccount {
  index_t live = 0;
  index_t live_peak = 0;
  index_t reserved = 0;
  index_t reserved_peak = 0;
  std::array<index_t, kMemoryKinds> by_kind{};
  std::array<index_t, kMemoryKinds> at_peak{};
};

/// Bytes of the block that a request for `bytes` gets. Blocks are rounded so that nearly equal
/// requests share cached blocks: to 64 bytes up to 4 KiB, then to a 64th of the next lower power of
/// two, at least a page (at most 1.6 % waste above 256 KiB).
[[nodiscard]] index_t block_size(index_t bytes);

class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// True where the host can read device memory through the pointer.
  [[nodiscard]] virtual bool host_addressable() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Queue> make_queue() = 0;
  /// Copies `bytes` between this device and host memory (either way), ordered by `queue`. Host
  /// memory that is read may change as soon as this returns; host memory that is written is there
  /// once the queue has come so far (Queue::mark, synchronize).
  virtual void copy(void* to, const void* from, index_t bytes, Queue& queue) = 0;
  /// Host memory that this device copies to and from without stopping the host (page-locked on a
  /// GPU), 64-byte aligned. Slow to get: keep it. Throws ExitCode::unavailable.
  [[nodiscard]] virtual void* host_allocate(index_t bytes);
  virtual void host_release(void* data) noexcept;
  /// Bytes that the device has in all and that are free now; 0 where nobody knows.
  struct Capacity {
    index_t total = 0, free = 0;
  };
  [[nodiscard]] virtual Capacity capacity() const { return {}; }

  /// For a profiler that looks at this process now; null where there is none.
  [[nodiscard]] virtual Ranges* ranges() { return nullptr; }

  /// Free memory that is kept in any case.
  static constexpr index_t kKeptBytes = index_t{64} << 20;

  /// At least `bytes` bytes (rounded up to the block size), 64-byte aligned. Throws
  /// ExitCode::unavailable with the largest consumers when there is no more.
  [[nodiscard]] void* allocate(index_t bytes, MemoryKind kind);
  void release(void* data, index_t bytes, MemoryKind kind) noexcept;
  /// Gives cached blocks and the pool back to the system.
  void trim();
  /// The peaks of the account begin anew, with what is there now.
  void restart_peaks();
  /// Before other sizes are asked for: cached blocks become a pool that serves requests of any
  /// size, where the system's memory can be cut (host memory); others go back to the system. Not
  /// while a Hold lives.
  void recycle();
  /// Gives back what nobody took from the pool.
  void release_pool();
  /// While one lives, nothing goes back to the system: what a queue records runs later, on blocks
  /// that may be free by then.
  class Hold {
   public:
    explicit Hold(Device& device) : device_(device) { ++device_.holds_; }
    ~Hold() { --device_.holds_; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Device& device_;
  };
  [[nodiscard]] const MemoryAccount& memory() const { return memory_; }

 protected:
  virtual void* system_allocate(index_t bytes) = 0;  // nullptr when there is none
  virtual void system_release(void* data, index_t bytes) noexcept = 0;
  /// Whether parts of a block of so many bytes can be used by themselves, and together with memory
  /// that follows it.
  [[nodiscard]] virtual bool divisible(index_t /*bytes*/) const { return false; }
  /// One block from parts of such blocks, which it replaces; nullptr where the system cannot do
  /// that.
  [[nodiscard]] virtual void* join(const std::vector<MemoryRange>& /*parts*/) { return nullptr; }
  virtual void release_range(MemoryRange /*part*/) noexcept {}

 private:
  MemoryAccount memory_;
  struct Blocks {             // of one size
    std::vector<void*> free;  // with room for all
    std::size_t made = 0;     // free and in use
    index_t last_use = 0;     // number of the last request for this size
  };
  [[nodiscard]] void* new_block(index_t size);
  [[nodiscard]] void* block_from_pool(index_t size);
  void make_room(index_t bytes);
  static void drop_free(Blocks& blocks);
  void give_back(index_t size, Blocks& blocks);

  std::map<index_t, Blocks> cache_;  // by rounded size
  PagePool pool_;
  index_t requests_ = 0;
  int holds_ = 0;
};

/// Host memory.
[[nodiscard]] std::unique_ptr<Device> make_cpu_device();
/// Counts memory without having any: pointers are non-null but must never be read (dry runs).
[[nodiscard]] std::unique_ptr<Device> make_dry_device();

/// Owning matrix [rows, cols], contiguous. Move-only. Not initialised.
class Tensor {
 public:
  Tensor() = default;
  Tensor(Device& device, DType dtype, index_t rows, index_t cols, MemoryKind kind);
  Tensor(Tensor&& other) noexcept;
  Tensor& operator=(Tensor&& other) noexcept;
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor();

  [[nodiscard]] TensorView view() const { return {data_, dtype_, rows_, cols_}; }
  operator TensorView() const { return view(); }       // NOLINT: a tensor is its view
  operator ConstTensorView() const { return view(); }  // NOLINT
  [[nodiscard]] index_t rows() const { return rows_; }
  [[nodiscard]] index_t cols() const { return cols_; }
  [[nodiscard]] DType dtype() const { return dtype_; }
  [[nodiscard]] bool allocated() const { return device_ != nullptr; }
  /// Gives the memory back now.
  void reset() noexcept;

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  index_t rows_ = 0;
  index_t cols_ = 0;
  MemoryKind kind_ = MemoryKind::workspace;
};

}  // namespace t3d
