// Every verb of the cpu back end against the reference (case_list.cpp), with one and several
// threads, contiguous and strided.
#include "ops/check_results.hpp"

namespace t3d::ops_test {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::bf16};

void check_case(const OpCase& op, index_t pad, int threads) {
  INFO(op.name << ", pad " << pad << ", threads " << threads);
  const auto reference = make_reference_ops(), cpu = make_cpu_ops(threads);
  Queue queue;
  auto expected = op.make_buffers(pad), result = op.make_buffers(pad);
  op.call(*reference, queue, expected);
  op.call(*cpu, queue, result);
  check_results(result, expected);
}

void check_all(const OpCase& op) {
  check_case(op, 0, 1);
  check_case(op, 3, 2);
}

}  // namespace

TEST_CASE("gemm equals the reference") { each_gemm_case(kDTypes, check_all); }
TEST_CASE("large gemm equals the reference") { each_large_gemm_case(kDTypes, check_all); }
TEST_CASE("attention equals the reference") { each_attention_case(kDTypes, check_all); }
TEST_CASE("single rows equal the reference") { each_decoding_case(kDTypes, check_all); }
TEST_CASE("rope equals the reference") { each_rope_case(kDTypes, check_all); }
TEST_CASE("norms equal the reference") { each_norm_case(kDTypes, check_all); }
TEST_CASE("activations equal the reference") { each_activation_case(kDTypes, check_all); }
TEST_CASE("embedding equals the reference") { each_embedding_case(kDTypes, check_all); }
TEST_CASE("cross-entropy equals the reference") { each_xent_case(kDTypes, check_all); }
TEST_CASE("element-by-element verbs equal the reference") {
  each_elementwise_case(kDTypes, check_all);
}
TEST_CASE("random verbs equal the reference") { each_random_case(kDTypes, check_all); }
TEST_CASE("sums equal the reference") { each_sum_case(kDTypes, check_all); }
TEST_CASE("aggregation equals the reference") { each_aggregate_case(kDTypes, check_all); }
TEST_CASE("optimizers equal the reference") { each_optimizer_case(kDTypes, check_all); }

}  // namespace t3d::ops_test
