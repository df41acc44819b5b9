// Attention engines against the reference: tensor cores and plain arithmetic, every mask, grouped
// heads, lengths around the tiles' borders, rows with gaps, memory of exactly the operands' size.
#include <cmath>
#include <memory>

#include "cuda/gemm_rig.hpp"
#include "ops/case_list.hpp"
#include "ops/cuda/engines.hpp"
#include "support/catch.hpp"

namespace t3d::test {
namespace {

using namespace ops_test;

/// One engine behind the verbs that the cases call; the others are the reference's.
class OneEngine {
 public:
  OneEngine(Device& device, std::string_view name) {
    for (auto& engine : cuda::make_native_attention_engines(device))
      if (engine->name() == name) engine_ = std::move(engine);
    REQUIRE(engine_ != nullptr);
  }
  [[nodiscard]] cuda::AttentionEngine& operator*() const { return *engine_; }

 private:
  std::unique_ptr<cuda::AttentionEngine> engine_;
};

struct Result {
  double out = 0, lse = 0, dqkv = 0;  // relative Frobenius errors
};

double error_of(const std::vector<double>& got, const std::vector<double>& want) {
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    size += want[i] * want[i];
  }
  return std::isnan(difference) ? HUGE_VAL : std::sqrt(difference / std::max(size, 1e-30));
}

std::vector<double> numbers_of(const Buffer& buffer) {
  std::vector<double> result;
  for (index_t r = 0; r < buffer.spec().rows; ++r)
    for (index_t c = 0; c < buffer.spec().cols; ++c) result.push_back(buffer.at(r, c));
  return result;
}

Result compare(std::string_view engine_name, const AttentionShape& s, DType dtype, index_t pad) {
  Gpu gpu;
  const OneEngine engine(*gpu.device, engine_name);
  const OpCase op = attention_backward_case(s, dtype);
  auto expected = op.make_buffers(pad), got = op.make_buffers(pad);
  Queue host_queue;
  const auto reference = make_reference_ops();
  op.call(*reference, host_queue, expected);

  std::vector<std::unique_ptr<OnDevice>> copies;
  for (Buffer& buffer : got) copies.push_back(std::make_unique<OnDevice>(buffer.view(), 0));
  AttentionArgs args;
  args.qkv = copies[0]->view();
  args.sequences = s.sequences;
  args.length = s.length;
  args.heads = s.heads;
  args.kv_heads = s.kv_heads;
  args.head_size = s.head_size;
  args.causal = s.causal;
  REQUIRE((*engine).usable(args));
  (*engine).forward(*gpu.queue, args, copies[1]->view(), copies[2]->view());
  (*engine).backward(*gpu.queue, args, copies[1]->view(), copies[2]->view(), copies[3]->view(),
                     copies[4]->view());
  gpu.queue->synchronize();
  for (std::size_t i = 0; i < got.size(); ++i) {
    copies[i]->download(got[i].view());
    CHECK(got[i].gaps_intact());
  }
  return {error_of(numbers_of(got[1]), numbers_of(expected[1])),
          error_of(numbers_of(got[2]), numbers_of(expected[2])),
          error_of(numbers_of(got[4]), numbers_of(expected[4]))};
}

// The kernels round what the reference does not: the weights P and dS once each to the 16-bit
// format (relative 2^-9 of each term in bf16, 2^-12 in fp16, at random signs), beside the final
// rounding of out and dqkv, which the reference does too. Norms of sums of such terms grow no
// faster than the terms, so the relative Frobenius error stays within a few roundings: 4 are
// allowed.
double allowed(DType dtype) {
  return dtype == DType::f32 ? 1e-5 : dtype == DType::bf16 ? 4 * 0x1p-9 : 4 * 0x1p-12;
}

void check(std::string_view engine, const AttentionShape& s, DType dtype, index_t pad) {
  const Result result = compare(engine, s, dtype, pad);
  INFO(engine << ' ' << name_of(dtype) << ": " << s.sequences << " x " << s.length << ", heads "
              << s.heads << '/' << s.kv_heads << " of " << s.head_size
              << (s.causal ? ", causal" : "") << ", pad " << pad);
  CHECK(result.out <= allowed(dtype));
  CHECK(result.lse <= (dtype == DType::f32 ? 1e-5 : 1e-4));
  CHECK(result.dqkv <= 2 * allowed(dtype));
}

}  // namespace

TEST_CASE("attention on tensor cores at the borders of its tiles") {
  for (const index_t length : {1, 31, 63, 64, 65, 129})
    for (const bool causal : {true, false}) {
      check("mma", {1, length, 2, 1, 64, causal}, DType::bf16, 0);
      check("mma", {1, length, 1, 1, 128, causal}, DType::f16, 0);
    }
}

TEST_CASE("attention on tensor cores with several sequences, grouped heads and gaps") {
  check("mma", {2, 200, 6, 2, 64, true}, DType::bf16, 8);
  check("mma", {3, 40, 4, 4, 128, true}, DType::bf16, 8);
  check("mma", {2, 130, 4, 1, 80, true}, DType::bf16, 0);
  check("mma", {1, 70, 2, 2, 8, false}, DType::f16, 8);
  check("mma", {1, 257, 1, 1, 96, true}, DType::f16, 0);
}

TEST_CASE("attention by plain arithmetic, any head size and alignment") {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    check("simt", {2, 33, 3, 1, 5, true}, dtype, 3);
    check("simt", {1, 65, 2, 2, 64, false}, dtype, 0);
    check("simt", {1, 20, 2, 1, 200, true}, dtype, 1);
  }
  check("simt", {1, 17, 1, 1, 256, true}, DType::f32, 0);
  check("simt", {1, 1, 1, 1, 1, true}, DType::f32, 0);
}

TEST_CASE("attention of nothing") {
  for (const char* engine : {"mma", "simt"}) {
    check(engine, {0, 16, 2, 2, 8}, DType::bf16, 0);
    check(engine, {2, 0, 2, 2, 8}, DType::bf16, 0);
    check(engine, {2, 16, 0, 0, 8}, DType::bf16, 0);
  }
}

}  // namespace t3d::test
