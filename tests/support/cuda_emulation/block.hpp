// One block of threads on the host: fibers that run until they meet a barrier or a warp collective.
// One host thread runs a block; several host threads (ranks) may each run their own.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace t3d::emulation {

struct Index3 {
  unsigned x = 0, y = 0, z = 0;
};

/// A launch's shape, and what its blocks see.
struct Launch {
  const char* name = "kernel";
  Index3 grid, block;
  std::size_t shared_bytes = 0;
};

/// Runs body() once for every thread of every block. Throws std::runtime_error on a deadlock.
void run_grid(const Launch& launch, const std::function<void()>& body);

/// What the running thread knows.
struct Place {
  Index3 thread, block;
  const Launch* launch = nullptr;
  unsigned lane = 0;
};
extern thread_local const Place* current_place;
[[nodiscard]] inline const Place& place() { return *current_place; }

/// The running block's dynamic shared memory: 0xFF before each block, ends at a guard page.
[[nodiscard]] std::byte* dynamic_shared();

/// __syncthreads, with the sum of `value` over the block's threads.
int barrier(int value = 0);

/// A collective of the lanes in `mask`: everybody's `bytes` at `own` (at most 32) are gathered;
/// when all have arrived, `gathered` is valid until this lane's next collective.
struct Gathered {
  alignas(16) std::array<std::array<std::byte, 32>, 32> lane;
  alignas(16) std::array<float, 400> scratch;  // filled by `finish`, once
};
using Finish = void (*)(Gathered&);
const Gathered& gather(std::uint32_t mask, const void* own, std::size_t bytes,
                       Finish finish = nullptr);

/// Copies of the running thread that are under way (cp.async).
struct AsyncCopy {
  void* to;
  std::array<std::byte, 16> data;
  int bytes;
};
struct AsyncCopies {
  std::vector<std::vector<AsyncCopy>> groups;  // closed ones, oldest first
  std::vector<AsyncCopy> open;
  void wait(std::size_t pending);
};
[[nodiscard]] AsyncCopies& async_copies();

/// Ends the launch with this text.
[[noreturn]] void fail(const std::string& text);

}  // namespace t3d::emulation
