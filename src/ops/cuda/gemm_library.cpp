// cuBLASLt as matmul engines. It wants column-major matrices: row-major C = A B is column-major
// C^T = B^T A^T in the same memory, so the operands change places and keep their flags. In fp8 it
// wants K contiguous in both operands, which the quantising kernels see to.
#include <fmt/format.h>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "ops/cuda/engines.hpp"
#include "ops/cuda/fp8.cuh"
#include "ops/cuda/gemm_library_plan.hpp"
#include "ops/cuda/gemm_plan.hpp"

namespace t3d::cuda {
namespace {

cudaDataType type_of(DType type) {
  switch (type) {
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

LibraryMatrix transposed_view(const ConstTensorView& x) {
  return {x.data, type_of(x.dtype), x.cols, x.rows, x.ld};
}

class LibraryEngine final : public GemmEngine {
 public:
  LibraryEngine(std::shared_ptr<GemmLibrary> library, bool tf32)
      : library_(std::move(library)), tf32_(tf32) {}
  [[nodiscard]] std::string_view name() const override {
    return tf32_ ? "cuBLASLt tf32" : "cuBLASLt";
  }
  [[nodiscard]] OperandRounding rounding() const override {
    return tf32_ ? OperandRounding::tf32 : OperandRounding::none;
  }
  [[nodiscard]] bool usable(const GemmArgs& args) const override {
    if (tf32_ && args.a.dtype != DType::f32) return false;
    return depth_of(args) > 0 && library_->can(call_of(args));
  }
  void run(Queue& queue, const GemmArgs& args) override { library_->run(queue, call_of(args)); }

 private:
  [[nodiscard]] LibraryCall call_of(const GemmArgs& args) const {
    LibraryCall call;
    call.a = transposed_view(args.b);
    call.b = transposed_view(args.a);
    call.d = transposed_view(args.c);
    call.transpose_a = args.transpose_b;
    call.transpose_b = args.transpose_a;
    call.accumulate = args.accumulate;
    call.tf32 = tf32_;
    call.bias = args.bias;
    return call;
  }

  std::shared_ptr<GemmLibrary> library_;
  bool tf32_;
};

class LibraryFp8Engine final : public GemmEngine {
 public:
  LibraryFp8Engine(Device& device, std::shared_ptr<GemmLibrary> library)
      : device_(device), library_(std::move(library)) {}
  [[nodiscard]] std::string_view name() const override { return "cuBLASLt fp8"; }
  [[nodiscard]] OperandRounding rounding() const override { return OperandRounding::fp8; }
  [[nodiscard]] bool usable(const GemmArgs& args) const override {
    return is_half(args.a.dtype) && depth_of(args) > 0 && args.c.rows % 16 == 0 &&
           args.c.cols % 16 == 0 && can_load_16_bytes(args.c) && library_->can(shape_of(args));
  }

  void run(Queue& queue, const GemmArgs& args) override {
    const Fp8Scale scale_a(device_, queue, args.a), scale_b(device_, queue, args.b);
    const index_t depth = padded_depth(args);
    const Tensor a = bytes(args.c.rows, depth), b = bytes(args.c.cols, depth);
    fp8_quantise(queue, args.a, args.transpose_a, scale_a, a.view().as<std::uint8_t>(), depth);
    fp8_quantise(queue, args.b, !args.transpose_b, scale_b, b.view().as<std::uint8_t>(), depth);
    LibraryCall call = shape_of(args);
    call.a.data = b.view().data;
    call.b.data = a.view().data;
    call.scale_a = scale_b.inverse();
    call.scale_b = scale_a.inverse();
    library_->run(queue, call);
  }

 private:
  static index_t padded_depth(const GemmArgs& args) { return (depth_of(args) + 15) / 16 * 16; }

  /// The call without the operands' addresses, which do not matter for the choice of algorithms.
  [[nodiscard]] static LibraryCall shape_of(const GemmArgs& args) {
    static constexpr float kSome = 1;
    const index_t depth = padded_depth(args);
    LibraryCall call;
    call.a = {nullptr, CUDA_R_8F_E4M3, depth, args.c.cols, depth};
    call.b = {nullptr, CUDA_R_8F_E4M3, depth, args.c.rows, depth};
    call.d = transposed_view(args.c);
    call.transpose_a = true;
    call.accumulate = args.accumulate;
    call.bias = args.bias;
    call.scale_a = call.scale_b = &kSome;
    return call;
  }
  [[nodiscard]] Tensor bytes(index_t rows, index_t depth) const {
    return {device_, DType::f32, rows, depth / 4, MemoryKind::workspace};
  }

  Device& device_;
  std::shared_ptr<GemmLibrary> library_;
};

}  // namespace

GemmEngines make_library_gemm_engines(Device& device, const EngineOptions& options) {
  const auto library = std::make_shared<GemmLibrary>(device);
  GemmEngines engines;
  int ordinal = 0;
  check(cudaGetDevice(&ordinal), "asking for the current GPU");
  constexpr int kFirstWithFp8 = 89;  // compute capability 8.9
  if (options.fp8 && cuda_info(ordinal).capability >= kFirstWithFp8)
    engines.push_back(std::make_unique<LibraryFp8Engine>(device, library));
  engines.push_back(std::make_unique<LibraryEngine>(library, false));
  if (options.tf32) engines.push_back(std::make_unique<LibraryEngine>(library, true));
  return engines;
}

std::string gemm_library_version() { return fmt::format("{}", cublasLtGetVersion()); }

}  // namespace t3d::cuda
