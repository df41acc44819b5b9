// cuBLASLt behind a plain call. A plan (descriptors and algorithm) is made once per shape; the
// first time that a shape runs outside of a recording, the algorithms that the library proposes are
// timed and the fastest is kept.
#pragma once
#include <cublasLt.h>

#include <array>
#include <map>
#include <memory>

#include "device/device.hpp"

namespace t3d::cuda {

/// D[m,n] (+)= op(A)[m,k] op(B)[k,n] (+ bias), all column-major as the library wants them.
struct LibraryMatrix {
  const void* data = nullptr;
  cudaDataType type = CUDA_R_16BF;
  index_t rows = 0, cols = 0, ld = 0;  // as stored
};
struct LibraryCall {
  LibraryMatrix a, b, d;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  bool tf32 = false;
  ConstTensorView bias;            // [1,m] fp32
  const float* scale_a = nullptr;  // fp8: one number each, on the device
  const float* scale_b = nullptr;
};

/// One queue at a time: its calls share a workspace.
class GemmLibrary {
 public:
  explicit GemmLibrary(Device& device);
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  /// Whether the library has an algorithm.
  [[nodiscard]] bool can(const LibraryCall& call);
  void run(Queue& queue, const LibraryCall& call);

 private:
  struct Plan;
  using Key = std::array<index_t, 18>;

  [[nodiscard]] static Key key_of(const LibraryCall& call);
  [[nodiscard]] Plan& plan_for(const LibraryCall& call);
  [[nodiscard]] std::unique_ptr<Plan> make_plan(const LibraryCall& call) const;
  void find_algorithms(Plan& plan, const LibraryCall& call) const;
  void keep_fastest(Queue& queue, Plan& plan, const LibraryCall& call, const void* bias);
  void submit(Queue& queue, const Plan& plan, const LibraryCall& call, std::size_t algorithm,
              const void* bias, void* d) const;

  Device& device_;
  cublasLtHandle_t handle_ = nullptr;
  Tensor workspace_;
  std::map<Key, std::unique_ptr<Plan>> plans_;
};

}  // namespace t3d::cuda
