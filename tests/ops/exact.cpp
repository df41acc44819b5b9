// What must hold to the bit: integer matrix products, random numbers, independence of the number of
// threads; and what must be noticed: NaN and infinity.
#include <cmath>
#include <thread>

#include "ops/cpu/gemm.hpp"
#include "ops/op_case.hpp"
#include "support/catch.hpp"

namespace t3d::ops_test {
namespace {

constexpr DType kDTypes[] = {DType::f32, DType::bf16};

OpCase integer_gemm(const GemmShape& shape, DType in, DType out) {
  OpCase op = gemm_case(shape, in, out);
  // |sum| <= 33 * 2 * 2 + 2 + 2 < 256: exact in bf16 too.
  for (BufferSpec& spec : op.buffers) spec.content = Content::integer, spec.spread = 2;
  return op;
}

template <class Fn>
void for_all_flags(const Fn& fn) {
  for (int flags = 0; flags < 16; ++flags)
    fn(GemmShape{19, 35, 33, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0,
                 (flags & 8) != 0});
}

void check_same(const OpCase& op, Ops& one, Ops& two, index_t pad = 0) {
  INFO(op.name);
  Queue queue;
  auto a = op.make_buffers(pad), b = op.make_buffers(pad);
  op.call(one, queue, a);
  op.call(two, queue, b);
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i].same_bytes(b[i]));
}

}  // namespace

TEST_CASE("integer gemm is exact in every form") {
  const auto reference = make_reference_ops(), cpu = make_cpu_ops(2);
  for_all_flags([&](const GemmShape& shape) {
    check_same(integer_gemm(shape, DType::f32, DType::f32), *reference, *cpu, 2);
    check_same(integer_gemm(shape, DType::bf16, DType::bf16), *reference, *cpu, 2);
    check_same(integer_gemm(shape, DType::bf16, DType::f32), *reference, *cpu, 2);
  });
}

TEST_CASE("bf16 gemm through fp32 copies is exact in every form") {
  const auto reference = make_reference_ops();
  cpu::Gemm through_fp32(1, false);
  Queue queue;
  for_all_flags([&](const GemmShape& shape) {
    for (const DType out : kDTypes) {
      const OpCase op = integer_gemm(shape, DType::bf16, out);
      INFO(op.name);
      auto expected = op.make_buffers(), got = op.make_buffers();
      op.call(*reference, queue, expected);
      GemmArgs args{got[0].view(),
                    got[1].view(),
                    got[2].view(),
                    shape.transpose_a,
                    shape.transpose_b,
                    shape.accumulate,
                    {}};
      if (shape.bias) args.bias = got[3].view();
      through_fp32.run(queue, args);
      CHECK(got[2].same_bytes(expected[2]));
    }
  });
}

TEST_CASE("dropout and initial values have the reference's bits") {
  const auto reference = make_reference_ops(), cpu = make_cpu_ops(2);
  const index_t shapes[][2] = {{1, 1}, {5, 3}, {7, 259}, {3, 5001}};
  for (const auto& [rows, cols] : shapes)
    for (const DType dtype : kDTypes) {
      for (const double p : {0.0, 0.1, 0.5, 0.9})
        check_same(dropout_case(rows, cols, p, dtype), *reference, *cpu, 1);
      check_same(random_init_case(rows, cols, dtype), *reference, *cpu, 1);
    }
}

TEST_CASE("dropout keeps about 1-p and does not depend on the cut") {
  const auto cpu = make_cpu_ops(1);
  Queue queue;
  Buffer whole({DType::f32, 40, 100, Role::in, Content::positive, 0.0}, 0, 1);
  Buffer part({DType::f32, 11, 37, Role::in, Content::positive, 0.0}, 0, 1);
  const RandomKey key{1, 2};
  cpu->dropout(queue, {whole.view(), key, 0, 0, 100, 0.25});
  cpu->dropout(queue, {part.view(), key, 9, 21, 100, 0.25});
  double kept = 0;
  for (index_t r = 0; r < 40; ++r)
    for (index_t c = 0; c < 100; ++c) kept += whole.at(r, c) != 0 ? 1 : 0;
  CHECK(std::abs(kept / 4000 - 0.75) < 0.03);
  for (index_t r = 0; r < 11; ++r)
    for (index_t c = 0; c < 37; ++c) CHECK(part.at(r, c) == whole.at(r + 9, c + 21));
}

TEST_CASE("results do not depend on the number of threads") {
  const auto one = make_cpu_ops(1), three = make_cpu_ops(3);
  for (const DType d : kDTypes) {
    check_same(attention_backward_case({2, 150, 4, 2, 24}, d), *one, *three);
    check_same(norm_backward_case(NormKind::layer, 300, 130, true, d), *one, *three);
    check_same(column_sums_case(1000, 70, d), *one, *three);
    check_same(sum_case(500000, true, d), *one, *three);
    check_same(sum_case(500000, false, d), *one, *three);
    check_same(scatter_case(300, 500, 9, d), *one, *three);
    check_same(xent_stats_case(50, 3000, 0, d), *one, *three);
    check_same(adamw_case(100000, d), *one, *three);
  }
}

TEST_CASE("several threads may use ops of their own at once") {
  const OpCase op = gemm_case({150, 170, 90, false, true, false, true}, DType::bf16, DType::bf16);
  const OpCase norm = norm_forward_case(NormKind::layer, 200, 100, DType::bf16);
  const auto expected_ops = make_cpu_ops(1);
  Queue queue;
  auto expected = op.make_buffers();
  op.call(*expected_ops, queue, expected);
  std::vector<int> same(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < same.size(); ++t)
    threads.emplace_back([&, t] {
      const auto ops = make_cpu_ops(1);
      for (int i = 0; i < 5; ++i) {
        Queue own;
        auto buffers = op.make_buffers(), others = norm.make_buffers();
        op.call(*ops, own, buffers);
        norm.call(*ops, own, others);
        same[t] += buffers[2].same_bytes(expected[2]) ? 1 : 0;
      }
    });
  for (auto& thread : threads) thread.join();
  for (const int count : same) CHECK(count == 5);
}

TEST_CASE("NaN and infinity reach the loss and the norm of the gradient") {
  Queue queue;
  const double poisons[] = {std::nan(""), HUGE_VAL, -HUGE_VAL};
  for (const auto& ops : {make_reference_ops(), make_cpu_ops(1)})
    for (const DType d : kDTypes)
      for (const double poison : poisons)
        for (const index_t at : {0, 77, 299}) {
          INFO(ops->name() << " " << name_of(d) << " " << poison << " at " << at);
          Buffer x({d, 1, 300}, 0, 1), result({DType::f64, 1, 1}, 0, 2);
          x.set(0, at, poison);
          ops->sum_squares(queue, x.view(), result.view());
          CHECK_FALSE(std::isfinite(result.at(0, 0)));
          if (poison == -HUGE_VAL) continue;  // a logit of -inf is a probability of 0
          const std::int32_t label = 5;
          const ConstTensorView target(&label, DType::i32, 1, 1);
          Buffer stats({DType::f32, 1, 3}, 0, 3), lse({DType::f32, 1, 1}, 0, 4), loss = lse;
          ops->xent_stats(queue, x.view(), target, 0, stats.view());
          ops->xent_merge(queue, stats.view(), 1, target, lse.view(), loss.view());
          CHECK_FALSE(std::isfinite(loss.at(0, 0)));
          Buffer y = x;
          ops->activation_forward(queue, Activation::gelu_tanh, x.view(), y.view());
          CHECK_FALSE(std::isfinite(y.at(0, at)));
        }
}

TEST_CASE("long operations poll between slices") {
  const auto cpu = make_cpu_ops(1);
  Queue queue;
  int polls = 0;
  queue.set_poll([&] { ++polls; });
  const auto polls_of = [&](const OpCase& op) {
    auto buffers = op.make_buffers();
    polls = 0;
    op.call(*cpu, queue, buffers);
    return polls;
  };
  CHECK(polls_of(gemm_case({1600, 1024, 256}, DType::f32, DType::f32)) >= 3);
  CHECK(polls_of(gemm_case({512, 2048, 512}, DType::bf16, DType::bf16)) >= 2);
  CHECK(polls_of(gemm_case({4, 4, 4}, DType::f32, DType::f32)) == 1);
  CHECK(polls_of(attention_forward_case({4, 64, 4, 4, 16}, DType::f32)) == 8);
}

TEST_CASE("dry ops touch nothing") {
  const auto dry = make_dry_ops();
  Queue queue;
  const OpCase op = gemm_case({3, 4, 5}, DType::f32, DType::f32);
  auto buffers = op.make_buffers();
  const auto before = op.make_buffers();
  op.call(*dry, queue, buffers);
  for (std::size_t i = 0; i < buffers.size(); ++i) CHECK(buffers[i].same_bytes(before[i]));
  dry->fill(queue, {nullptr, DType::bf16, 10, 10}, 1.0);
}

TEST_CASE("wrong shapes are told") {
  const auto cpu = make_cpu_ops(1), reference = make_reference_ops();
  Queue queue;
  Buffer a({DType::f32, 3, 4}, 0, 1), b({DType::f32, 5, 6}, 0, 2), c({DType::f32, 3, 6}, 0, 3);
  const GemmArgs wrong{a.view(), b.view(), c.view(), false, false, false, {}};
  CHECK_THROWS_AS(cpu->gemm(queue, wrong), Error);
  CHECK_THROWS_AS(reference->gemm(queue, wrong), Error);
  CHECK_FALSE(cpu->supports(DType::f64));
  CHECK(reference->supports(DType::f64));
}

}  // namespace t3d::ops_test
