// Every native matmul engine against the reference: all forms, odd, empty, strided and unaligned
// operands, tiles that are not full, slices of K; to the bit where the numbers are integers.
#include <bit>
#include <cmath>

#include "cuda/gemm_rig.hpp"
#include "ops/cuda/fp8.cuh"
#include "ops/cuda/gemm_plan.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

using cuda::GemmEngine;
using cuda::OperandRounding;
using ops_test::Buffer;
using ops_test::GemmShape;
using ops_test::OpCase;

struct Placement {
  index_t pad = 0, offset = 0;  // numbers between rows, and before the first
};

constexpr DType kFormats[][2] = {{DType::f32, DType::f32},
                                 {DType::bf16, DType::bf16},
                                 {DType::bf16, DType::f32},
                                 {DType::f16, DType::f16},
                                 {DType::f16, DType::f32}};

/// Twice the largest relative error of a rounded operand.
double operand_error(OperandRounding rounding) {
  if (rounding == OperandRounding::none) return 0;
  return rounding == OperandRounding::tf32 ? 0x1p-10 : 0x1p-3;
}

class Bench {
 public:
  Bench() {
    EngineOptions options;
    options.tf32 = options.fp8 = true;
    engines_ = cuda::make_native_gemm_engines(*gpu_.device, options);
  }

  /// All engines that can do it; results of integers must be equal to the bit.
  void check(const GemmShape& shape, DType in, DType out, Placement place, bool integers) {
    OpCase op = ops_test::gemm_case(shape, in, out);
    if (integers)
      for (auto& spec : op.buffers) spec.content = ops_test::Content::integer, spec.spread = 2;
    Queue host_queue;
    auto expected = op.make_buffers(place.pad);
    op.call(*reference_, host_queue, expected);
    int used = 0;
    for (const auto& engine : engines_) {
      GemmOnDevice call(op, shape, place.pad, place.offset);
      if (!engine->usable(call.args)) continue;
      ++used;
      INFO(op.name << ", " << engine->name() << ", pad " << place.pad << ", offset "
                   << place.offset);
      engine->run(*gpu_.queue, call.args);
      gpu_.queue->synchronize();
      Buffer& result = call.result();
      CHECK(result.gaps_intact());
      if (integers) {
        CHECK(result.same_bytes(expected[2]));
        continue;
      }
      CHECK(worst_ratio(widened(result, engine->rounding(), shape.k), expected[2]) <= 1.0);
      GemmOnDevice again(op, shape, place.pad, place.offset);
      engine->run(*gpu_.queue, again.args);
      gpu_.queue->synchronize();
      CHECK(again.result().same_bytes(result));
    }
    CHECK(used >= 1);
  }

  [[nodiscard]] const cuda::GemmEngines& engines() const { return engines_; }
  Gpu& gpu() { return gpu_; }

 private:
  /// Rounded operands: sums of k products with independent errors, seldom above six standard
  /// deviations, or of few large ones.
  static Buffer widened(const Buffer& result, OperandRounding rounding, index_t k) {
    auto spec = result.spec();
    spec.bound += operand_error(rounding) * (3 * std::sqrt(static_cast<double>(k)) + 4);
    Buffer copy(spec, 0, 0);
    for (index_t r = 0; r < spec.rows; ++r)
      for (index_t c = 0; c < spec.cols; ++c) copy.set(r, c, result.at(r, c));
    return copy;
  }

  Gpu gpu_;
  cuda::GemmEngines engines_;
  std::unique_ptr<Ops> reference_ = make_reference_ops();
};

constexpr Placement kAligned{0, 0}, kStrided{3, 0}, kOdd{0, 1};

}  // namespace

TEST_CASE("matmul engines equal the reference in small shapes") {
  Bench bench;
  const index_t shapes[][3] = {{1, 1, 1},    {3, 5, 7},   {17, 33, 65}, {64, 48, 96},
                               {0, 5, 4},    {5, 0, 4},   {6, 5, 0},    {1, 130, 19},
                               {130, 1, 19}, {700, 9, 5}, {9, 1300, 5}};
  for (const auto& [m, n, k] : shapes)
    for (int flags = 0; flags < 16; ++flags)
      for (const DType dtype : {DType::f32, DType::bf16})
        bench.check(with_flags(m, n, k, flags), dtype, dtype, kStrided, false);
  for (int flags = 0; flags < 16; ++flags)
    for (const auto& [in, out] : kFormats)
      bench.check(with_flags(64, 48, 96, flags), in, out, kAligned, false);
}

TEST_CASE("matmul engines equal the reference across tiles") {
  Bench bench;
  const index_t shapes[][3] = {{136, 264, 200}, {131, 257, 133}, {264, 72, 136}, {130, 300, 75}};
  for (const auto& [m, n, k] : shapes)
    for (int form = 0; form < 4; ++form)
      for (const auto& [in, out] : kFormats) {
        // Accumulation with fp32 results, bias without: as the layers do.
        const int flags = form | (out == DType::f32 ? 4 : 8);
        bench.check(with_flags(m, n, k, flags), in, out, kAligned, false);
      }
}

TEST_CASE("matmul engines take operands at odd addresses") {
  Bench bench;
  for (int flags = 0; flags < 16; ++flags)
    for (const auto& [in, out] : kFormats) {
      bench.check(with_flags(72, 80, 40, flags), in, out, kOdd, false);
      bench.check(with_flags(72, 80, 40, flags), in, out, {8, 8}, false);
      bench.check(with_flags(40, 136, 48, flags), in, out, {4, 4}, false);
    }
}

TEST_CASE("matmuls of integers are exact in every form") {
  Bench bench;
  for (int flags = 0; flags < 16; ++flags)
    for (const auto& [in, out] : kFormats) {
      bench.check(with_flags(136, 264, 72, flags), in, out, kAligned, true);
      bench.check(with_flags(19, 35, 33, flags), in, out, kStrided, true);
    }
}

TEST_CASE("a long K is cut into slices whose sum is exact") {
  Bench bench;
  // fp32 holds the sums; C rounds them once, like the reference.
  for (int flags = 0; flags < 16; ++flags)
    for (const auto& [in, out] : kFormats) {
      bench.check(with_flags(40, 72, 2056, flags), in, out, kAligned, true);
      bench.check(with_flags(21, 35, 1029, flags), in, out, kStrided, true);
    }
  bench.check(with_flags(64, 64, 4000, 5), DType::bf16, DType::f32, kAligned, false);
}

TEST_CASE("NaN and infinity reach the product") {
  Bench bench;
  const GemmShape shape = with_flags(8, 16, 24, 2);
  for (const auto& [in, out] : kFormats)
    // The last is the NaN that GPUs make: all bits set, which rounding must not turn into a number.
    for (const double poison : {std::nan(""), HUGE_VAL, -HUGE_VAL,
                                std::bit_cast<double>(std::uint64_t{0x7fffffffffffffff})})
      for (const auto& engine : bench.engines()) {
        const OpCase op = ops_test::gemm_case(shape, in, out);
        GemmOnDevice call(op, shape, 0, 0);
        if (!engine->usable(call.args)) continue;
        INFO(engine->name() << " " << poison);
        call.host[0].set(3, 5, poison);
        call.device[0] = std::make_unique<OnDevice>(call.host[0].view(), 0);
        call.args.a = call.device[0]->view();
        engine->run(*bench.gpu().queue, call.args);
        bench.gpu().queue->synchronize();
        const Buffer& result = call.result();
        bool all_lost = true;
        for (index_t c = 0; c < shape.n; ++c)
          all_lost = all_lost && !std::isfinite(result.at(3, c));
        CHECK(all_lost);
      }
}

TEST_CASE("the scale of an fp8 operand comes from its largest number, wherever it is") {
  Gpu gpu;
  // 6 packs of 8 in a row, 256 packs in a block: first and last threads and blocks.
  const index_t places[][2] = {{0, 0}, {42, 24}, {42, 32}, {74, 44}, {21, 15}, {70, 44}};
  for (const auto& [row, col] : places) {
    Buffer x({DType::f16, 75, 45}, 3, 1);
    x.set(row, col, -1000.0);
    const OnDevice on_device(x.view(), 0);
    const cuda::Fp8Scale scale(*gpu.device, *gpu.queue, on_device.view());
    float found[2] = {};
    gpu.device->copy(found, scale.factor(), sizeof found, *gpu.queue);
    gpu.queue->synchronize();
    INFO(row << ", " << col);
    CHECK(found[0] == 0.25F);
    CHECK(found[1] == 4.0F);
  }
}

TEST_CASE("fp8 operands have the same numbers in bytes, transposed or not") {
  Gpu gpu;
  Buffer x({DType::bf16, 75, 45, ops_test::Role::in, ops_test::Content::normal, 3}, 3, 1);
  x.set(2, 3, 0.0);
  x.set(70, 44, 1000.0);  // the largest: the scale is 2^-2
  const OnDevice on_device(x.view(), 0);
  const cuda::Fp8Scale scale(*gpu.device, *gpu.queue, on_device.view());
  Buffer rounded({DType::bf16, 75, 48}, 0, 2), bytes({DType::i32, 75, 12}, 0, 3),
      turned({DType::i32, 45, 20}, 0, 4);
  const OnDevice y(rounded.view(), 0), z(bytes.view(), 0), zt(turned.view(), 0);
  cuda::fp8_round(*gpu.queue, on_device.view(), scale, {y.view().data, DType::bf16, 75, 45, 48});
  cuda::fp8_quantise(*gpu.queue, on_device.view(), false, scale, z.view().as<std::uint8_t>(), 48);
  cuda::fp8_quantise(*gpu.queue, on_device.view(), true, scale, zt.view().as<std::uint8_t>(), 80);
  gpu.queue->synchronize();
  y.download(rounded.view());
  z.download(bytes.view());
  zt.download(turned.view());
  const auto value = [](std::uint8_t e4m3) {
    const int mantissa = e4m3 & 7, exponent = e4m3 >> 3 & 15;
    const double size =
        exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
    return (e4m3 & 0x80) != 0 ? -size : size;
  };
  int wrong = 0;
  for (index_t r = 0; r < 75; ++r)
    for (index_t c = 0; c < 48; ++c) {
      const double expected = rounded.at(r, c);
      if (c < 45) {
        const double scaled = x.at(r, c) / 4;
        wrong += std::abs(expected - scaled) > std::abs(scaled) / 16 + 0x1p-10 ? 1 : 0;
        wrong += value(turned.view().as<std::uint8_t>()[c * 80 + r]) != expected ? 1 : 0;
      }
      wrong += value(bytes.view().as<std::uint8_t>()[r * 48 + c]) != expected ? 1 : 0;
      wrong += c >= 45 && expected != 0 ? 1 : 0;
    }
  for (index_t c = 0; c < 45; ++c)
    for (index_t r = 75; r < 80; ++r)
      wrong += turned.view().as<std::uint8_t>()[c * 80 + r] != 0 ? 1 : 0;
  CHECK(wrong == 0);
}

TEST_CASE("plans cover K and fill the device") {
  const cuda::Machine h200{132, 227 << 10};
  const auto args_of = [](index_t m, index_t n, index_t k) {
    GemmArgs args;
    args.a = {nullptr, DType::bf16, k, m};
    args.b = {nullptr, DType::bf16, k, n};
    args.c = {nullptr, DType::f32, m, n};
    args.transpose_a = true;
    return args;
  };
  const index_t shapes[][3] = {{768, 768, 65536}, {64, 64, 1 << 20}, {768, 3072, 8192},
                               {8192, 8192, 64},  {16, 16, 16},      {5, 7, 0}};
  for (const auto& [m, n, k] : shapes) {
    const GemmArgs args = args_of(m, n, k);
    const cuda::GemmPlan plan = cuda::plan_mma(args, h200);
    INFO(m << "x" << n << "x" << k << ": tile " << plan.tile << ", " << plan.splits << " slices");
    CHECK(plan.splits * plan.depth_per_split >= k);
    CHECK((plan.splits == 1 || (plan.splits - 1) * plan.depth_per_split < k));
  }
  CHECK(cuda::plan_mma(args_of(768, 768, 65536), h200).splits > 1);
  CHECK(cuda::plan_mma(args_of(8192, 8192, 4096), h200).splits == 1);
  CHECK(cuda::plan_mma(args_of(8192, 8192, 4096), h200).tile == cuda::kMmaWide);
  CHECK(cuda::plan_mma(args_of(64, 64, 64), h200).tile == cuda::kMmaSmall);
  CHECK(cuda::plan_mma(args_of(63, 64, 64), h200).tile == cuda::kMmaUnaligned);
  const cuda::Machine small{30, 99 << 10};
  CHECK(cuda::plan_mma(args_of(8192, 8192, 4096), small).tile != cuda::kMmaWide);
}

}  // namespace t3d::test
