// Every verb of the GPU back end against the reference (ops/case_list.cpp), with every operand in
// device memory of exactly its size: contiguous and aligned, with gaps between the rows, and
// contiguous but off every 16-byte border.
#include <memory>

#include "cuda/gemm_rig.hpp"
#include "ops/case_list.hpp"
#include "ops/cuda/make.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

using namespace ops_test;

constexpr DType kDTypes[] = {DType::f32, DType::bf16, DType::f16};

struct Bench : Gpu {
  std::unique_ptr<Ops> ops = make_cuda_ops(*device, {});
  std::unique_ptr<Ops> reference = make_reference_ops();
};

/// Runs the case on the device and brings all buffers back.
std::vector<Buffer> run_on_device(Bench& bench, const OpCase& op, index_t pad, index_t offset) {
  std::vector<Buffer> buffers = op.make_buffers(pad);
  std::vector<std::unique_ptr<OnDevice>> copies;
  for (Buffer& buffer : buffers) {
    copies.push_back(std::make_unique<OnDevice>(buffer.view(), offset));
    buffer.show_at(copies.back()->view().data);
  }
  op.call(*bench.ops, *bench.queue, buffers);
  bench.queue->synchronize();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i].show_at(nullptr);
    copies[i]->download(buffers[i].view());
  }
  return buffers;
}

void check_case(Bench& bench, const OpCase& op, index_t pad, index_t offset) {
  INFO(op.name << ", pad " << pad << ", offset " << offset);
  Queue host_queue;
  auto expected = op.make_buffers(pad);
  op.call(*bench.reference, host_queue, expected);
  const auto result = run_on_device(bench, op, pad, offset);
  for (std::size_t i = 0; i < result.size(); ++i) {
    INFO("buffer " << i);
    CHECK(result[i].gaps_intact());
    if (result[i].spec().role == Role::in)
      CHECK(result[i].same_bytes(expected[i]));
    else
      CHECK(worst_ratio(result[i], expected[i]) <= 1.0);
  }
}

CaseFn check_all(Bench& bench) {
  return [&bench](const OpCase& op) {
    check_case(bench, op, 0, 0);
    check_case(bench, op, 3, 0);
    check_case(bench, op, 0, 1);
  };
}

/// Equal to the reference to the bit.
void check_same(Bench& bench, const OpCase& op) {
  INFO(op.name);
  Queue host_queue;
  auto expected = op.make_buffers(0);
  op.call(*bench.reference, host_queue, expected);
  const auto result = run_on_device(bench, op, 0, 0);
  for (std::size_t i = 0; i < result.size(); ++i) CHECK(result[i].same_bytes(expected[i]));
}

/// Twice the same.
void check_repeats(Bench& bench, const OpCase& op) {
  INFO(op.name);
  const auto one = run_on_device(bench, op, 0, 0), two = run_on_device(bench, op, 0, 0);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].same_bytes(two[i]));
}

}  // namespace

TEST_CASE("device rope equals the reference") {
  Bench bench;
  each_rope_case(kDTypes, check_all(bench));
}

TEST_CASE("device norms equal the reference") {
  Bench bench;
  each_norm_case(kDTypes, check_all(bench));
}

TEST_CASE("device activations equal the reference") {
  Bench bench;
  each_activation_case(kDTypes, check_all(bench));
}

TEST_CASE("device embedding equals the reference") {
  Bench bench;
  each_embedding_case(kDTypes, check_all(bench));
}

TEST_CASE("device cross-entropy equals the reference") {
  Bench bench;
  each_xent_case(kDTypes, check_all(bench));
}

TEST_CASE("device element-by-element verbs equal the reference") {
  Bench bench;
  each_elementwise_case(kDTypes, check_all(bench));
}

TEST_CASE("device random verbs equal the reference") {
  Bench bench;
  each_random_case(kDTypes, check_all(bench));
}

TEST_CASE("device sums equal the reference") {
  Bench bench;
  each_sum_case(kDTypes, check_all(bench));
}

TEST_CASE("device optimizers equal the reference") {
  Bench bench;
  each_optimizer_case(kDTypes, check_all(bench));
}

TEST_CASE("device attention equals the reference") {
  Bench bench;
  each_attention_case(kDTypes, check_all(bench));
}

TEST_CASE("device gemm equals the reference") {
  Bench bench;
  each_gemm_case(kDTypes, check_all(bench));
}

TEST_CASE("device dropout and initial values have the reference's bits") {
  Bench bench;
  const index_t shapes[][2] = {{1, 1}, {5, 3}, {7, 259}, {3, 5001}, {4, 64}};
  for (const auto& [rows, cols] : shapes)
    for (const DType dtype : kDTypes) {
      for (const double p : {0.0, 0.1, 0.5, 0.9})
        check_same(bench, dropout_case(rows, cols, p, dtype));
      check_same(bench, random_init_case(rows, cols, dtype));
    }
}

TEST_CASE("device sums repeat to the bit") {
  Bench bench;
  for (const DType dtype : kDTypes) {
    check_repeats(bench, norm_backward_case(NormKind::layer, 300, 136, true, dtype));
    check_repeats(bench, column_sums_case(1000, 72, dtype));
    check_repeats(bench, sum_case(50000, true, dtype));
    check_repeats(bench, scatter_case(300, 40, 9, dtype));
    check_repeats(bench, xent_stats_case(5, 3000, 0, dtype));
  }
}

}  // namespace t3d::test
