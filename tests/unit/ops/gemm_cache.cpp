// The CPU's matmul primitives: kept by shape, but not for ever.
#include <vector>

#include "ops/cpu/gemm.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

TEST_CASE("many shapes of products do not grow memory, and stay right", "[gemm]") {
  cpu::Gemm gemm(1);
  Queue queue;
  constexpr index_t kDepth = 8;
  std::vector<bf16> ones(4096 * kDepth, bf16(1.0F));
  std::vector<float> out(4096);
  const auto product = [&](index_t rows) {
    GemmArgs args;
    args.a = ConstTensorView(ones.data(), DType::bf16, rows, kDepth);
    args.b = ConstTensorView(ones.data(), DType::bf16, kDepth, 2);
    args.c = TensorView(out.data(), DType::f32, rows, 2);
    gemm.run(queue, args);
    return out[static_cast<std::size_t>(2 * rows - 1)];
  };
  const auto many = static_cast<index_t>(cpu::Gemm::kKept) + 100;
  for (index_t rows = 2; rows < many; ++rows) {
    const float result = product(rows);
    if (result != kDepth) CHECK(result == kDepth);
    if (gemm.kept() > cpu::Gemm::kKept) CHECK(gemm.kept() <= cpu::Gemm::kKept);
  }
  CHECK(product(2) == kDepth);  // long forgotten
  gemm.trim();
  CHECK(gemm.kept() == 0);
  CHECK(product(many - 1) == kDepth);
}

}  // namespace
}  // namespace t3d
