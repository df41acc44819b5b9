// Matrix products by oneDNN: sgemm for fp32 (at the speed of the machine for every transpose),
// matmul primitives for bf16. Where the processor has no bf16 instructions oneDNN's bf16 is a plain
// loop, so there the product goes through fp32 copies.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "ops/cpu/dnnl_shim.hpp"
#include "ops/ops.hpp"

namespace t3d::cpu {

class Gemm {
 public:
  /// `native_bf16` false forces the fp32 path (tests).
  explicit Gemm(int threads, bool native_bf16 = true);
  void run(Queue& queue, const GemmArgs& args);
  /// Forgets the primitives that it keeps.
  void trim();
  /// Primitives kept: at most kKept, the last used ones.
  [[nodiscard]] std::size_t kept();
  static constexpr std::size_t kKept = 512;

 private:
  struct Matmul {
    dnnl::matmul primitive;
    dnnl::memory::desc a, b, c, bias, scratchpad;
    bool usable = false;
  };
  using MatmulPtr = std::shared_ptr<const Matmul>;
  struct Kept {
    MatmulPtr matmul;
    index_t last_use = 0;
  };
  // m, n, k, lda, ldb, ldc, flags
  using Key = std::tuple<index_t, index_t, index_t, index_t, index_t, index_t, int>;

  void run_slice(const GemmArgs& args);
  void run_fp32(const GemmArgs& args);
  void run_bf16(const GemmArgs& args, const Matmul& matmul);
  void run_through_fp32(const GemmArgs& args);
  void add_bias(const GemmArgs& args) const;
  [[nodiscard]] MatmulPtr matmul_for(const GemmArgs& args);
  [[nodiscard]] Matmul make(const GemmArgs& args) const;

  int threads_;
  bool native_bf16_;
  dnnl::engine engine_;
  std::mutex mutex_;  // guards the cache
  std::map<Key, Kept> cache_;
  index_t uses_ = 0;
};

}  // namespace t3d::cpu
