// Our own matmul engines. `mma` chooses tile and slices by estimate (gemm_plan.hpp); beside it
// every other tile is an engine, so that the tuner may prove the estimate wrong. `simt` multiplies
// fp32 numbers as they are. `fp8 in 16 bits` rounds the operands to fp8 and multiplies them with
// `mma`: no faster than it, but it shows on every GPU what fp8 does to a training.
#include <fmt/format.h>

#include <utility>

#include "ops/cuda/engines.hpp"
#include "ops/cuda/fp8.cuh"
#include "ops/cuda/gemm_problem.hpp"

namespace t3d::cuda {
namespace {

GemmProblem problem_of(const GemmArgs& args, const GemmPlan& plan) {
  GemmProblem problem;
  problem.a = args.a.data;
  problem.b = args.b.data;
  problem.lda = args.a.ld;
  problem.ldb = args.b.ld;
  problem.m = static_cast<int>(args.c.rows);
  problem.n = static_cast<int>(args.c.cols);
  problem.k = static_cast<int>(depth_of(args));
  problem.depth_per_split = static_cast<int>(plan.depth_per_split);
  problem.out.c = args.c.data;
  problem.out.ldc = args.c.ld;
  problem.out.bias = args.bias.as<float>();
  problem.out.fp32 = args.c.dtype == DType::f32;
  problem.out.accumulate = args.accumulate;
  problem.out.vector = can_load_16_bytes(args.c);
  return problem;
}

/// Calls launch(problem) for the whole of K, or for its slices and then for their sum.
template <class Launch>
void run_plan(Device& device, Queue& queue, const GemmArgs& args, const GemmPlan& plan,
              GemmProblem problem, const Launch& launch) {
  if (plan.splits == 1) return launch(problem);
  const Tensor partial(device, DType::f32, plan.splits, args.c.count(), MemoryKind::workspace);
  const GemmOutput whole = problem.out;
  problem.out = {};
  problem.out.c = partial.view().data;
  problem.out.ldc = problem.n;
  problem.out.fp32 = true;
  problem.out.vector = problem.n % 4 == 0;
  problem.split_stride = args.c.count();
  launch(problem);
  launch_split_sum(queue, args.c.dtype, plan.splits, problem.m, problem.n,
                   partial.view().as<float>(), whole);
}

void run_mma(Device& device, Queue& queue, const GemmArgs& args, const GemmPlan& plan,
             const GemmProblem& problem) {
  run_plan(device, queue, args, plan, problem, [&](const GemmProblem& part) {
    if (args.a.dtype == DType::bf16) return launch_mma_bf16(queue, args, plan, part);
    if (args.a.dtype == DType::f16) return launch_mma_f16(queue, args, plan, part);
    launch_mma_tf32(queue, args, plan, part);
  });
}

class MmaGemm final : public GemmEngine {
 public:
  /// Of 16-bit numbers, or with `tf32` of fp32 ones; `tile` >= 0 fixes the tile.
  MmaGemm(Device& device, bool tf32, std::optional<int> tile)
      : device_(device),
        machine_(machine_now()),
        tf32_(tf32),
        tile_(tile),
        name_(tf32 ? "mma tf32" : "mma") {
    if (tile) name_ += fmt::format(" {}", kMmaTiles[*tile].name);
  }
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] OperandRounding rounding() const override {
    return tf32_ ? OperandRounding::tf32 : OperandRounding::none;
  }
  [[nodiscard]] bool usable(const GemmArgs& args) const override {
    if (tf32_ ? args.a.dtype != DType::f32 : !is_half(args.a.dtype)) return false;
    if (!tile_) return true;
    constexpr index_t kWorthATrial = 1 << 21;  // below, any tile is as good
    if (args.c.count() * depth_of(args) < kWorthATrial) return false;
    if (!has_mma_tile(args.a.dtype, *tile_)) return false;
    if (kMmaTiles[*tile_].shared_bytes() > machine_.shared_bytes) return false;
    const int chosen = plan_mma(args, machine_).tile;  // by the engine without a fixed tile
    return chosen != kMmaUnaligned && chosen != *tile_;
  }
  void run(Queue& queue, const GemmArgs& args) override {
    const GemmPlan plan = plan_mma(args, machine_, tile_);
    run_mma(device_, queue, args, plan, problem_of(args, plan));
  }

 private:
  Device& device_;
  Machine machine_;
  bool tf32_;
  std::optional<int> tile_;
  std::string name_;
};

class SimtGemm final : public GemmEngine {
 public:
  explicit SimtGemm(Device& device) : device_(device), machine_(machine_now()) {}
  [[nodiscard]] std::string_view name() const override { return "simt"; }
  [[nodiscard]] bool usable(const GemmArgs& args) const override {
    return args.a.dtype == DType::f32;
  }
  void run(Queue& queue, const GemmArgs& args) override {
    const GemmPlan plan = plan_simt(args, machine_);
    run_plan(device_, queue, args, plan, problem_of(args, plan),
             [&](const GemmProblem& part) { launch_simt(queue, args, plan, part); });
  }

 private:
  Device& device_;
  Machine machine_;
};

class Fp8GridEngine final : public GemmEngine {
 public:
  explicit Fp8GridEngine(Device& device) : device_(device), machine_(machine_now()) {}
  [[nodiscard]] std::string_view name() const override { return "fp8 in 16 bits"; }
  [[nodiscard]] OperandRounding rounding() const override { return OperandRounding::fp8; }
  [[nodiscard]] bool usable(const GemmArgs& args) const override { return is_half(args.a.dtype); }

  void run(Queue& queue, const GemmArgs& args) override {
    const Fp8Scale scale_a(device_, queue, args.a), scale_b(device_, queue, args.b);
    const Tensor a = packed_rows(args.a), b = packed_rows(args.b);
    GemmArgs rounded = args;
    rounded.a = round(queue, args.a, scale_a, a);
    rounded.b = round(queue, args.b, scale_b, b);
    const GemmPlan plan = plan_mma(rounded, machine_);
    GemmProblem problem = problem_of(rounded, plan);
    problem.out.scale_a = scale_a.inverse();
    problem.out.scale_b = scale_b.inverse();
    // Partial sums are not scaled: the scales go to the output that is finished last.
    run_mma(device_, queue, rounded, plan, problem);
  }

 private:
  Tensor packed_rows(const ConstTensorView& x) {
    return {device_, x.dtype, x.rows, (x.cols + 7) / 8 * 8, MemoryKind::workspace};
  }
  static ConstTensorView round(Queue& queue, const ConstTensorView& x, const Fp8Scale& scale,
                               const Tensor& to) {
    const TensorView y(to.view().data, x.dtype, x.rows, x.cols, to.cols());
    fp8_round(queue, x, scale, y);
    return y;
  }

  Device& device_;
  Machine machine_;
};

}  // namespace

GemmEngines make_native_gemm_engines(Device& device, const EngineOptions& options) {
  GemmEngines engines;
  if (options.fp8) engines.push_back(std::make_unique<Fp8GridEngine>(device));
  const auto add_mma = [&](bool tf32) {
    engines.push_back(std::make_unique<MmaGemm>(device, tf32, std::nullopt));
    for (const int tile : {kMmaWide, kMmaSquare, kMmaSmall})
      engines.push_back(std::make_unique<MmaGemm>(device, tf32, tile));
  };
  add_mma(false);
  if (options.tf32) add_mma(true);
  engines.push_back(std::make_unique<SimtGemm>(device));
  return engines;
}

}  // namespace t3d::cuda
