// Device and page-locked memory: every allocation ends at a guard page and starts filled with 0xFF.
#pragma once
#include <cstddef>
#include <map>
#include <mutex>
#include <set>

#include "cuda_runtime.h"

namespace t3d::emulation {

class MemoryTable {
 public:
  static MemoryTable& instance();
  /// nullptr where the limit (T3D_EMULATED_MEMORY_MIB) is reached.
  void* allocate(std::size_t bytes, cudaMemoryType type);
  bool release(void* data, cudaMemoryType type);
  [[nodiscard]] cudaMemoryType type_of(const void* data);
  [[nodiscard]] std::size_t limit() const { return limit_; }
  [[nodiscard]] std::size_t used() const { return used_; }

 private:
  MemoryTable();
  struct Block {
    std::byte* mapping;
    std::size_t mapped, bytes;
    cudaMemoryType type;
  };
  std::mutex mutex_;
  std::map<const std::byte*, Block> blocks_;  // by start
  std::size_t limit_, used_ = 0;
};

[[nodiscard]] std::set<CUstream_st*>& streams_of_thread();
cudaError_t note_error(cudaError_t error);
[[nodiscard]] bool capturing(cudaStream_t stream);

}  // namespace t3d::emulation
