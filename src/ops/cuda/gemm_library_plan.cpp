#include "ops/cuda/gemm_library_plan.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "device/cuda/cuda_queue.hpp"
#include "ops/cuda/engine_trial.hpp"
#include "ops/cuda/gemm_bias.hpp"

namespace t3d::cuda {
namespace {

constexpr index_t kWorkspaceBytes = 32 << 20;
constexpr int kProposals = 16;

void check_library(cublasStatus_t status, std::string_view what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  const bool none = status == CUBLAS_STATUS_NOT_INITIALIZED || status == CUBLAS_STATUS_ALLOC_FAILED;
  throw_error(none ? ExitCode::unavailable : ExitCode::internal, "cuBLASLt: {} failed: {}", what,
              cublasLtGetStatusName(status));
}

template <class T, cublasStatus_t (*destroy)(T)>
struct Destroyer {
  void operator()(T handle) const { destroy(handle); }
};
template <class T, cublasStatus_t (*destroy)(T)>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Destroyer<T, destroy>>;

using Operation = Owned<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy>;
using MatrixLayout = Owned<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;
using Preference = Owned<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy>;

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t attribute, const T& value) {
  check_library(cublasLtMatmulDescSetAttribute(operation.get(), attribute, &value, sizeof(value)),
                "describing a matmul");
}
template <class T>
void set(const Preference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
         const T& value) {
  check_library(
      cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)),
      "describing a matmul");
}

MatrixLayout layout_of(const LibraryMatrix& matrix) {
  cublasLtMatrixLayout_t layout = nullptr;
  check_library(
      cublasLtMatrixLayoutCreate(&layout, matrix.type, static_cast<std::uint64_t>(matrix.rows),
                                 static_cast<std::uint64_t>(matrix.cols), matrix.ld),
      "describing a matrix");
  return MatrixLayout(layout);
}

/// The power of two that divides the address, 16 at most: nothing gets faster beyond.
index_t alignment_of(const void* data) {
  const auto address = reinterpret_cast<std::uintptr_t>(data) | 16U;
  return static_cast<index_t>(address & (~address + 1));
}

cudaDataType library_type(DType type) {
  switch (type) {
    case DType::bf16: return CUDA_R_16BF;
    case DType::f16: return CUDA_R_16F;
    default: return CUDA_R_32F;
  }
}

DType our_type(cudaDataType type) {
  if (type == CUDA_R_16BF) return DType::bf16;
  return type == CUDA_R_16F ? DType::f16 : DType::f32;
}

}  // namespace

struct GemmLibrary::Plan {
  Operation operation;
  MatrixLayout a, b, d;
  DType bias = DType::f32;  // the format in which the library takes it
  std::vector<cublasLtMatmulHeuristicResult_t> algorithms;  // the best first
  bool timed = false;
};

GemmLibrary::GemmLibrary(Device& device)
    : device_(device),
      workspace_(device, DType::f32, 1, kWorkspaceBytes / 4, MemoryKind::workspace) {
  check_library(cublasLtCreate(&handle_), "the start");
}

GemmLibrary::~GemmLibrary() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

GemmLibrary::Key GemmLibrary::key_of(const LibraryCall& call) {
  const auto flags = (call.transpose_a ? 1 : 0) + (call.transpose_b ? 2 : 0) +
                     (call.accumulate ? 4 : 0) + (call.bias.data != nullptr ? 8 : 0) +
                     (call.scale_a != nullptr ? 16 : 0);
  return {call.a.rows, call.a.cols, call.a.ld, call.a.type, alignment_of(call.a.data),
          call.b.rows, call.b.cols, call.b.ld, call.b.type, alignment_of(call.b.data),
          call.d.rows, call.d.cols, call.d.ld, call.d.type, alignment_of(call.d.data),
          flags,       call.tf32,   0};
}

std::unique_ptr<GemmLibrary::Plan> GemmLibrary::make_plan(const LibraryCall& call) const {
  auto plan = std::make_unique<Plan>();
  cublasLtMatmulDesc_t operation = nullptr;
  const auto compute = call.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
  check_library(cublasLtMatmulDescCreate(&operation, compute, CUDA_R_32F), "describing a matmul");
  plan->operation.reset(operation);
  const std::int32_t op_a = call.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
  const std::int32_t op_b = call.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
  set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSA, op_a);
  set(plan->operation, CUBLASLT_MATMUL_DESC_TRANSB, op_b);
  if (call.scale_a != nullptr) {
    set(plan->operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, call.scale_a);
    set(plan->operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, call.scale_b);
  }
  plan->a = layout_of(call.a);
  plan->b = layout_of(call.b);
  plan->d = layout_of(call.d);
  if (call.bias.data == nullptr) {
    find_algorithms(*plan, call);
    return plan;
  }
  // It adds a bias of D's format only, or of bf16 to the fp32 result of fp8 operands.
  const std::uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  set(plan->operation, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
  set(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias.data);
  const bool fp8 = call.a.type == CUDA_R_8F_E4M3;
  plan->bias = fp8 && call.d.type == CUDA_R_32F ? DType::bf16 : our_type(call.d.type);
  const std::int32_t bias_type = library_type(plan->bias);
  set(plan->operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type);
  find_algorithms(*plan, call);
  return plan;
}

void GemmLibrary::find_algorithms(Plan& plan, const LibraryCall& call) const {
  cublasLtMatmulPreference_t made = nullptr;
  check_library(cublasLtMatmulPreferenceCreate(&made), "describing a matmul");
  const Preference preference(made);
  const auto workspace = static_cast<std::uint64_t>(kWorkspaceBytes);
  set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  // Slices of K summed in place are summed in any order: two runs would differ. Sums in the format
  // of D would be less exact.
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions);
  const auto alignment = [&](cublasLtMatmulPreferenceAttributes_t attribute, const void* data) {
    const auto bytes = static_cast<std::uint32_t>(alignment_of(data));
    set(preference, attribute, bytes);
  };
  alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, call.a.data);
  alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, call.b.data);
  alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, call.d.data);
  alignment(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, call.d.data);

  plan.algorithms.resize(kProposals);
  int found = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, plan.operation.get(), plan.a.get(), plan.b.get(), plan.d.get(), plan.d.get(),
      preference.get(), kProposals, plan.algorithms.data(), &found);
  // "Not supported" and "invalid" are answers here: there is no such kernel.
  if (status != CUBLAS_STATUS_SUCCESS) found = 0;
  plan.algorithms.resize(static_cast<std::size_t>(found));
  std::erase_if(plan.algorithms, [](const cublasLtMatmulHeuristicResult_t& proposal) {
    return proposal.state != CUBLAS_STATUS_SUCCESS;
  });
}

GemmLibrary::Plan& GemmLibrary::plan_for(const LibraryCall& call) {
  std::unique_ptr<Plan>& plan = plans_[key_of(call)];
  if (plan == nullptr) plan = make_plan(call);
  return *plan;
}

bool GemmLibrary::can(const LibraryCall& call) { return !plan_for(call).algorithms.empty(); }

void GemmLibrary::submit(Queue& queue, const Plan& plan, const LibraryCall& call,
                         std::size_t algorithm, const void* bias, void* d) const {
  if (bias != nullptr) set(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  if (call.scale_a != nullptr) {
    set(plan.operation, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, call.scale_a);
    set(plan.operation, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, call.scale_b);
  }
  const float one = 1.0F, beta = call.accumulate ? 1.0F : 0.0F;
  check_library(
      cublasLtMatmul(handle_, plan.operation.get(), &one, call.a.data, plan.a.get(), call.b.data,
                     plan.b.get(), &beta, call.d.data, plan.d.get(), d, plan.d.get(),
                     &plan.algorithms[algorithm].algo, workspace_.view().data,
                     static_cast<std::size_t>(kWorkspaceBytes), stream_of(queue)),
      "a matmul");
}

// D goes elsewhere while it is also an input.
void GemmLibrary::keep_fastest(Queue& queue, Plan& plan, const LibraryCall& call,
                               const void* bias) {
  plan.timed = true;
  if (plan.algorithms.size() < 2) return;
  Tensor elsewhere;
  void* d = const_cast<void*>(call.d.data);
  if (call.accumulate) {
    elsewhere =
        Tensor(device_, our_type(call.d.type), call.d.cols, call.d.ld, MemoryKind::workspace);
    d = elsewhere.view().data;
  }
  std::size_t best = 0;
  double best_time = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < plan.algorithms.size(); ++i) {
    submit(queue, plan, call, i, bias, d);  // the first run loads the kernel
    const double microseconds =
        microseconds_of(queue, [&] { submit(queue, plan, call, i, bias, d); });
    if (microseconds >= best_time) continue;
    best_time = microseconds;
    best = i;
  }
  std::swap(plan.algorithms.front(), plan.algorithms[best]);
  plan.algorithms.resize(1);
}

void GemmLibrary::run(Queue& queue, const LibraryCall& call) {
  Plan& plan = plan_for(call);
  T3D_CHECK(!plan.algorithms.empty(), "cuBLASLt has no algorithm for this matmul");
  Tensor rounded;
  const void* bias = call.bias.data;
  if (bias != nullptr && plan.bias != DType::f32) {
    rounded = Tensor(device_, plan.bias, 1, call.bias.cols, MemoryKind::workspace);
    round_bias(queue, call.bias, rounded);
    bias = rounded.view().data;
  }
  if (!plan.timed && !is_recording(queue)) keep_fastest(queue, plan, call, bias);
  submit(queue, plan, call, 0, bias, const_cast<void*>(call.d.data));
}

}  // namespace t3d::cuda
