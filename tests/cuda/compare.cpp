// Every verb of the GPU back end against the reference (ops/case_list.cpp), with every operand in
// device memory of its own: on and off the 16-byte borders, with and without gaps between rows.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "cuda/gemm_rig.hpp"
#include "ops/check_results.hpp"
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

/// Where operands lie: numbers between rows (at least `pad`, rows then a multiple of `unit`),
/// before the first one, and whether memory begins on a border and continues behind the last
/// number. Where it does not continue, one number too many read or written shows (guard pages,
/// compute-sanitizer).
struct Placement {
  index_t pad = 0, unit = 1, offset = 0;
  bool continues = false;
};
constexpr Placement kTight, kGaps{3}, kShifted{0, 1, 1}, kAligned{0, 1, 0, true},
    kAlignedRows{0, 16, 0, true};

/// A buffer's copy on the device.
class Image {
 public:
  Image(Buffer& host, const Placement& place) : host_(host) {
    const TensorView view = host.view();
    if (place.continues) {
      constexpr index_t kBorder = 256;
      const index_t bytes = view.rows * view.ld * size_of(view.dtype);
      behind_.assign(static_cast<std::size_t>((bytes / kBorder + 1) * kBorder - bytes), kMark);
      bytes_.resize(static_cast<std::size_t>(bytes));
      std::memcpy(bytes_.data(), view.data, bytes_.size());
      bytes_.insert(bytes_.end(), behind_.begin(), behind_.end());
      memory_ = std::make_unique<OnDevice>(all(), 0);
    } else {
      memory_ = std::make_unique<OnDevice>(view, place.offset);
    }
    host.show_at(memory_->view().data);
  }
  /// Brings the contents back; false where memory behind the last number has changed.
  bool download() {
    host_.show_at(nullptr);
    if (behind_.empty()) {
      memory_->download(host_.view());
      return true;
    }
    memory_->download(all());
    std::memcpy(host_.view().data, bytes_.data(), bytes_.size() - behind_.size());
    return std::equal(behind_.rbegin(), behind_.rend(), bytes_.rbegin());
  }

 private:
  static constexpr std::byte kMark{0x33};
  TensorView all() {
    return {bytes_.data(), DType::i32, 1, static_cast<index_t>(bytes_.size() / 4)};
  }

  Buffer& host_;
  std::vector<std::byte> bytes_, behind_;
  std::unique_ptr<OnDevice> memory_;
};

/// Runs the case on the device and brings all buffers back.
std::vector<Buffer> run_on_device(Bench& bench, const OpCase& op, const Placement& place) {
  std::vector<Buffer> buffers = op.make_buffers(place.pad, place.unit);
  std::vector<std::unique_ptr<Image>> images;
  for (Buffer& buffer : buffers) images.push_back(std::make_unique<Image>(buffer, place));
  op.call(*bench.ops, *bench.queue, buffers);
  bench.queue->synchronize();
  for (const auto& image : images) CHECK(image->download());
  return buffers;
}

void check_case(Bench& bench, const OpCase& op, const Placement& place) {
  INFO(op.name << ", pad " << place.pad << ", unit " << place.unit << ", offset " << place.offset
               << ", memory continues: " << place.continues);
  Queue host_queue;
  auto expected = op.make_buffers(place.pad, place.unit);
  op.call(*bench.reference, host_queue, expected);
  const auto result = run_on_device(bench, op, place);
  check_results(result, expected);
}

CaseFn check_all(Bench& bench) {
  return [&bench](const OpCase& op) {
    for (const Placement& place : {kTight, kGaps, kShifted, kAligned, kAlignedRows})
      check_case(bench, op, place);
  };
}

/// Equal to the reference to the bit.
void check_same(Bench& bench, const OpCase& op) {
  INFO(op.name);
  Queue host_queue;
  auto expected = op.make_buffers(0);
  op.call(*bench.reference, host_queue, expected);
  const auto result = run_on_device(bench, op, kAligned);
  for (std::size_t i = 0; i < result.size(); ++i) CHECK(result[i].same_bytes(expected[i]));
}

/// Twice the same.
void check_repeats(Bench& bench, const OpCase& op) {
  INFO(op.name);
  const auto one = run_on_device(bench, op, kAligned), two = run_on_device(bench, op, kAligned);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(one[i].same_bytes(two[i]));
}

}  // namespace

TEST_CASE("device rope equals the reference") {
  Bench bench;
  each_rope_case(kDTypes, check_all(bench));
}

TEST_CASE("device single rows equal the reference") {
  Bench bench;
  each_decoding_case(kDTypes, check_all(bench));
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

TEST_CASE("device aggregation equals the reference") {
  Bench bench;
  each_aggregate_case(kDTypes, check_all(bench));
}

// 16-bit attention rounds its weights too: attention.cpp holds it to the bound that this allows.
TEST_CASE("device attention equals the reference") {
  Bench bench;
  constexpr DType kExact[] = {DType::f32};
  each_attention_case(kExact, check_all(bench));
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

// CPU and GPU ranks must agree on them, and on who takes part.
TEST_CASE("device coefficients of Adasum have the reference's bits") {
  Bench bench;
  for (const index_t n : {1, 2, 3, 5, 8, 31, 64})
    for (const index_t groups : {1, 5, 70})
      for (const bool noise : {false, true})
        for (const AggregateRule rule : {AggregateRule::mean, AggregateRule::adasum})
          check_same(bench, adasum_case({n, groups, rule, noise, false, noise, 0.5}));
}

/// Segments of all lengths, more than one launch takes, that share groups near and far.
OpCase many_segments(OpCase op, index_t count, bool gram) {
  constexpr index_t kGroups = 7;
  std::vector<Segment> segments;
  for (index_t begin = 3, k = 0; begin < count; ++k) {
    const index_t end = std::min(count, begin + k * k % 97);
    segments.push_back({begin, end, k * k % kGroups});
    begin = end + k % 2;
  }
  REQUIRE(segments.size() > 130);
  op.buffers[1].rows = kGroups;
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    if (gram) return ops.gram(queue, b[0].view(), segments, b[1].view());
    ops.combine(queue, b[0].view(), segments, b[1].view(), b[2].view());
  };
  return op;
}

TEST_CASE("device aggregation of more segments than one launch takes") {
  Bench bench;
  constexpr index_t kCount = 9000;
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const index_t n : {4, 9})
      check_all(bench)(many_segments(gram_case(n, kCount, Cut::many, dtype), kCount, true));
    const OpCase combine = combine_case(4, kCount, Cut::many, dtype, DType::f32);
    check_all(bench)(many_segments(combine, kCount, false));
  }
}

// Every number of rows has a kernel of its own up to 8, and divides threads in its own way beyond.
TEST_CASE("device Gram matrices and combinations of any number of rows") {
  Bench bench;
  for (index_t n = 1; n <= 64; n += n < 20 ? 1 : 11) {
    check_case(bench, gram_case(n, 700, Cut::many, DType::bf16), kAlignedRows);
    check_case(bench, combine_case(n, 700, Cut::many, DType::bf16, DType::f32), kAlignedRows);
  }
  // More chunks than the lanes that add them.
  check_case(bench, gram_case(2, 300001, Cut::one, DType::f32), kAligned);
}

TEST_CASE("device aggregation can be recorded") {
  Bench bench;
  for (OpCase op :
       {gram_case(5, 9301, Cut::many, DType::f32), gram_case(9, 9301, Cut::one, DType::bf16),
        combine_case(5, 9301, Cut::many, DType::bf16, DType::f32),
        adasum_case({5, 70, AggregateRule::adasum})}) {
    op.call = [call = op.call](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
      queue.record(0, [&] { call(ops, queue, b); });
    };
    for (int time = 0; time < 2; ++time) check_case(bench, op, kAligned);
  }
}

TEST_CASE("device Gram matrices do not depend on where rows lie") {
  Bench bench;
  for (const DType dtype : kDTypes)
    for (const index_t n : {2, 8, 13}) {
      const OpCase op = gram_case(n, 9301, Cut::many, dtype);
      INFO(op.name);
      const auto aligned = run_on_device(bench, op, kAlignedRows);
      for (const Placement& place : {kShifted, kAligned}) {
        const auto other = run_on_device(bench, op, place);
        for (index_t g = 0; g < op.buffers[1].rows; ++g)
          for (index_t pair = 0; pair < op.buffers[1].cols; ++pair)
            CHECK(aligned[1].at(g, pair) == other[1].at(g, pair));
      }
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
    check_repeats(bench, gram_case(8, 9301, Cut::many, dtype));
  }
}

TEST_CASE("device NaN and infinity reach the loss and the norm of the gradient") {
  Bench bench;
  for (const DType dtype : kDTypes)
    for (const double poison : {std::nan(""), HUGE_VAL, -HUGE_VAL})
      for (const index_t at : {0, 77, 299}) {
        INFO(name_of(dtype) << " " << poison << " at " << at);
        const auto result_of = [&](OpCase op, std::size_t buffer, index_t col) {
          op.prepare = [&](std::vector<Buffer>& b) { b[0].set(0, at, poison); };
          return run_on_device(bench, op, kAligned)[buffer].at(0, col);
        };
        CHECK_FALSE(std::isfinite(result_of(sum_case(300, true, dtype), 1, 0)));
        const OpCase gelu = activation_forward_case(Activation::gelu_tanh, 1, 300, dtype);
        CHECK_FALSE(std::isfinite(result_of(gelu, 1, at)));
        if (poison == -HUGE_VAL) continue;  // a logit of -inf is a probability of 0
        CHECK_FALSE(std::isfinite(result_of(xent_stats_case(1, 300, 0, dtype), 2, 1)));
      }
}

// Every division of work among threads: pieces of one kind only, a rest, a single number.
TEST_CASE("device statistics hold at every length of a row") {
  Bench bench;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const index_t cols :
         {2, 8, 31, 256, 264, 1016, 1024, 1032, 2040, 2048, 2056, 16384, 16392})
      for (const index_t rows : {1, 9}) {
        check_case(bench, norm_forward_case(NormKind::layer, rows, cols, dtype), kAligned);
        check_case(bench, norm_backward_case(NormKind::layer, rows, cols, true, dtype), kAligned);
        check_case(bench, xent_stats_case(rows, cols, 0, dtype), kAligned);
        check_case(bench, xent_grad_case(rows, cols, 0, dtype), kAligned);
      }
}

TEST_CASE("device gradients of a norm without its weights") {
  Bench bench;
  for (const bool gamma : {false, true})
    for (const bool beta : {false, true}) {
      OpCase op = norm_backward_case(NormKind::layer, 50, 24, false, DType::bf16);
      op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
        ops.norm_backward_stats(queue, b[0].view(), b[1].view(), b[2].view(), b[3].view(),
                                b[4].view());
        ops.norm_backward_apply(queue, NormKind::layer, b[0].view(), b[1].view(), b[2].view(),
                                b[3].view(), b[4].view(), 24, false, b[5].view(),
                                gamma ? b[6].view() : TensorView(),
                                beta ? b[7].view() : TensorView());
      };
      check_all(bench)(op);
    }
}

}  // namespace t3d::test
