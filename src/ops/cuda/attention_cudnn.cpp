// cuDNN's fused attention as an engine: bf16 and fp16, causal or not, grouped heads, head sizes
// that are multiples of 8, 16-byte aligned rows. Operands are read and written in place through
// strides; only the log of the sum of exponentials changes its order (attention_cudnn_layout.hpp).
//
// Plans are made once per shape and strides (it takes seconds: the library compiles kernels), when
// usable() first meets them. A shape without a plan is not usable from then on. The backward pass
// is the one whose runs do not differ; its workspace grows with the square of the length, so it
// goes in shares of at most 1 GiB.
//
// State of proof: cuDNN 9.19 and 9.26 accept these graphs and finalize plans for GPUs of capability
// 8.0 to 12.0 that were described to it; they have not run on a GPU yet. The choice of engines
// drops one that fails or disagrees with ours (engine_trial.hpp). With CUDNN_LOGLEVEL_DBG=2 and
// CUDNN_LOGDEST_DBG=stderr cuDNN itself says why it refuses a graph.
#include <fmt/format.h>

#include <array>
#include <map>
#include <memory>
#include <utility>

#include "device/cuda/cuda_device.hpp"
#include "device/cuda/cuda_queue.hpp"
#include "ops/cuda/attention_cudnn_graphs.hpp"
#include "ops/cuda/attention_cudnn_layout.hpp"
#include "ops/cuda/engines.hpp"
#include "ops/cuda/gemm_plan.hpp"

namespace t3d::cuda {
namespace {

constexpr int kFirstVersion = cudnn_version(9, 0), kFirstCapability = 80;
constexpr index_t kShareBytes = index_t{1} << 30;
constexpr index_t kWorkspaceLimit = kShareBytes + (index_t{1} << 20);  // its own small needs

cudnnDataType_t type_of(DType type) {
  return type == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_HALF;
}

CudnnAttentionShape shape_of(const AttentionArgs& args) {
  return {args.sequences, args.length, args.heads, args.kv_heads, args.head_size, args.causal};
}

/// The library's known gaps, by its own front end: 9.10.0 and 9.10.1 give wrong results; up to 9.15
/// the backward pass does for lengths that are no multiple of 128.
bool is_sound(int version, const AttentionArgs& args) {
  if (version == cudnn_version(9, 10, 0) || version == cudnn_version(9, 10, 1)) return false;
  return version > cudnn_version(9, 15) || args.length % 128 == 0;
}

bool is_supported(const AttentionArgs& args) {
  constexpr index_t kMaxHead = 256;
  return is_half(args.qkv.dtype) && args.sequences > 0 && args.length > 1 && args.kv_heads > 0 &&
         args.heads % args.kv_heads == 0 && args.head_size % 8 == 0 && args.head_size <= kMaxHead &&
         can_load_16_bytes(args.qkv);
}

CudnnAttentionShape share_of(const AttentionArgs& args) {
  CudnnAttentionShape shape = shape_of(args);
  const CudnnShare share = backward_share(shape, kShareBytes);
  shape.heads = shape.heads / shape.kv_heads * share.kv_heads;
  shape.kv_heads = share.kv_heads;
  shape.sequences = share.sequences;
  return shape;
}

/// Plans by shape and strides; null where the library had none.
template <class Written>
class Plans {
 public:
  struct Entry {
    Written names;  // its graph is the plan's
    CudnnPlan plan;
  };
  using Key = std::array<index_t, 11>;

  static Key key_of(const CudnnAttentionShape& shape, const CudnnRows& rows, DType type) {
    return {shape.sequences,
            shape.length,
            shape.heads,
            shape.kv_heads,
            shape.head_size,
            shape.causal,
            rows.qkv,
            rows.out,
            rows.dout,
            rows.dqkv,
            static_cast<index_t>(type)};
  }
  Entry* find(const Key& key) const {
    const auto entry = entries_.find(key);
    return entry == entries_.end() ? nullptr : entry->second.get();
  }
  template <class Write>
  Entry* find_or_make(const Key& key, cudnnHandle_t handle, const Write& write) {
    const auto [entry, is_new] = entries_.try_emplace(key);
    if (is_new) {
      try {
        Written written = write();
        CudnnPlan plan(handle, std::move(written.graph), kWorkspaceLimit);
        entry->second.reset(new Entry{std::move(written), std::move(plan)});
      } catch (const Error& error) {
        if (error.code() != ExitCode::unavailable) throw;
      }
    }
    return entry->second.get();
  }

 private:
  std::map<Key, std::unique_ptr<Entry>> entries_;
};
using ForwardPlans = Plans<CudnnForward>;
using BackwardPlans = Plans<CudnnBackward>;

void* head_of(const ConstTensorView& rows, index_t row, index_t column) {
  return const_cast<void*>(rows.row_range(row, rows.rows - row).at(0, column));
}

class CudnnEngine final : public AttentionEngine {
 public:
  explicit CudnnEngine(Device& device)
      : device_(device),
        functions_(load_cudnn()),
        handle_(functions_),
        native_(make_native_attention_engines(device)) {}

  [[nodiscard]] std::string_view name() const override { return "cuDNN"; }
  /// For rows without gaps; others get their plans when they come.
  [[nodiscard]] bool usable(const AttentionArgs& args) const override {
    if (!is_supported(args) || !is_sound(version_of(functions_), args)) return false;
    const index_t out_ld = args.heads * args.head_size;
    return forward_plan(args, {args.qkv.ld, out_ld, 0, 0}, true) != nullptr &&
           backward_plan(args, {args.qkv.ld, out_ld, out_ld, args.qkv.ld}, true) != nullptr;
  }
  void forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) override;
  void backward(Queue& queue, const AttentionArgs& args, ConstTensorView out, ConstTensorView lse,
                ConstTensorView dout, TensorView dqkv) override;

 private:
  /// Null where cuDNN has none, and where there is none yet and it may not be made: a plan
  /// compiles kernels, which a recording does not allow.
  ForwardPlans::Entry* forward_plan(const AttentionArgs& args, const CudnnRows& rows,
                                    bool may_make) const {
    const CudnnAttentionShape shape = shape_of(args);
    const auto key = ForwardPlans::key_of(shape, rows, args.qkv.dtype);
    if (!may_make) return forward_plans_.find(key);
    return forward_plans_.find_or_make(key, handle_.get(), [&] {
      return cudnn_forward_graph(functions_, shape, rows, type_of(args.qkv.dtype));
    });
  }
  /// For one share.
  BackwardPlans::Entry* backward_plan(const AttentionArgs& args, const CudnnRows& rows,
                                      bool may_make) const {
    const CudnnAttentionShape shape = share_of(args);
    const auto key = BackwardPlans::key_of(shape, rows, args.qkv.dtype);
    if (!may_make) return backward_plans_.find(key);
    return backward_plans_.find_or_make(key, handle_.get(), [&] {
      return cudnn_backward_graph(functions_, shape, rows, type_of(args.qkv.dtype));
    });
  }
  /// For operands that cuDNN cannot reach, and inside a recording for strides that were not met
  /// before it.
  [[nodiscard]] AttentionEngine& native_for(const AttentionArgs& args) const {
    for (const auto& engine : native_)
      if (engine->usable(args)) return *engine;
    throw_error(ExitCode::unavailable, "no attention kernel of ours for head size {}",
                args.head_size);
  }
  [[nodiscard]] Tensor numbers(index_t rows, index_t cols) const {
    return {device_, DType::f32, rows, cols, MemoryKind::workspace};
  }
  [[nodiscard]] Tensor workspace_of(const CudnnPlan& plan) const {
    return numbers(1, (plan.workspace_bytes() + 3) / 4);
  }

  Device& device_;
  CudnnFunctions functions_;
  CudnnHandle handle_;
  AttentionEngines native_;
  mutable ForwardPlans forward_plans_;
  mutable BackwardPlans backward_plans_;
};

void CudnnEngine::forward(Queue& queue, const AttentionArgs& args, TensorView out, TensorView lse) {
  ForwardPlans::Entry* entry =
      can_load_16_bytes(out) ? forward_plan(args, {args.qkv.ld, out.ld, 0, 0}, !is_recording(queue))
                             : nullptr;
  if (entry == nullptr) return native_for(args).forward(queue, args, out, lse);
  const Tensor statistics = numbers(args.sequences * args.heads, args.length);
  const Tensor workspace = workspace_of(entry->plan);
  const index_t k = args.heads * args.head_size, v = k + args.kv_heads * args.head_size;
  const CudnnForward& names = entry->names;
  entry->plan.run(handle_.get(), stream_of(queue),
                  {{names.q, head_of(args.qkv, 0, 0)},
                   {names.k, head_of(args.qkv, 0, k)},
                   {names.v, head_of(args.qkv, 0, v)},
                   {names.out, out.data},
                   {names.statistics, statistics.view().data}},
                  workspace.view().data);
  lse_from_statistics(queue, statistics.view(), args.length, lse);
}

void CudnnEngine::backward(Queue& queue, const AttentionArgs& args, ConstTensorView out,
                           ConstTensorView lse, ConstTensorView dout, TensorView dqkv) {
  const bool reachable =
      can_load_16_bytes(out) && can_load_16_bytes(dout) && can_load_16_bytes(dqkv);
  BackwardPlans::Entry* entry =
      reachable ? backward_plan(args, {args.qkv.ld, out.ld, dout.ld, dqkv.ld}, !is_recording(queue))
                : nullptr;
  if (entry == nullptr) return native_for(args).backward(queue, args, out, lse, dout, dqkv);
  const CudnnAttentionShape share = share_of(args);
  const Tensor statistics = numbers(args.sequences * args.heads, args.length);
  const Tensor sums = numbers(share.sequences * share.heads, args.length);
  const Tensor workspace = workspace_of(entry->plan);
  statistics_from_lse(queue, lse, args.length, statistics.view());
  const CudnnBackward& names = entry->names;
  const index_t group = args.heads / args.kv_heads;
  for (index_t sequence = 0; sequence < args.sequences; sequence += share.sequences)
    for (index_t kv_head = 0; kv_head < args.kv_heads; kv_head += share.kv_heads) {
      const index_t row = sequence * args.length, head = kv_head * group;
      const index_t q = head * args.head_size, k = (args.heads + kv_head) * args.head_size,
                    v = k + args.kv_heads * args.head_size;
      entry->plan.run(
          handle_.get(), stream_of(queue),
          {{names.q, head_of(args.qkv, row, q)},
           {names.k, head_of(args.qkv, row, k)},
           {names.v, head_of(args.qkv, row, v)},
           {names.out, head_of(out, row, q)},
           {names.statistics, head_of(statistics.view(), sequence * args.heads + head, 0)},
           {names.dout, head_of(dout, row, q)},
           {names.dq, head_of(dqkv, row, q)},
           {names.dk, head_of(dqkv, row, k)},
           {names.dv, head_of(dqkv, row, v)},
           {names.sums, sums.view().data}},
          workspace.view().data);
    }
}

}  // namespace

AttentionEngines make_library_attention_engines(Device& device) {
  int ordinal = 0;
  check(cudaGetDevice(&ordinal), "asking for the current GPU");
  AttentionEngines engines;
  if (cuda_info(ordinal).capability >= kFirstCapability)
    engines.push_back(std::make_unique<CudnnEngine>(device));
  return engines;
}

std::string attention_library_version() {
  try {
    return cudnn_version_text(version_of(load_cudnn()));
  } catch (const Error&) {
    return "none";
  }
}

}  // namespace t3d::cuda
