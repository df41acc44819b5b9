// Cases: matrix products, attention, rotary embedding, normalisation.
#include <fmt/format.h>

#include <cmath>

#include "ops/op_case.hpp"

namespace t3d::ops_test {
namespace {

double root(index_t n) { return std::sqrt(static_cast<double>(n) + 1.0); }
double as_double(index_t n) { return static_cast<double>(n); }

double causal_pairs(const AttentionShape& s) {
  const double all = as_double(s.length) * as_double(s.length);
  return (s.causal ? 0.5 * all : all) * as_double(s.sequences * s.heads);
}

AttentionArgs args_of(const AttentionShape& s, const TensorView& qkv) {
  return {qkv, s.sequences, s.length, s.heads, s.kv_heads, s.head_size, s.causal};
}

std::string text_of(const AttentionShape& s, DType dtype) {
  return fmt::format("{}x{} heads {}/{} size {} {} {}", s.sequences, s.length, s.heads, s.kv_heads,
                     s.head_size, s.causal ? "causal" : "full", name_of(dtype));
}

}  // namespace

OpCase gemm_case(const GemmShape& s, DType in, DType out) {
  OpCase op;
  op.name = fmt::format("gemm {}x{}x{} {}{}{}{} {}->{}", s.m, s.n, s.k, s.transpose_a ? 'T' : 'N',
                        s.transpose_b ? 'T' : 'N', s.accumulate ? " +=" : "", s.bias ? " bias" : "",
                        name_of(in), name_of(out));
  // Partial sums of k products of standard normal numbers reach sqrt(k) themselves.
  const double bound = kEps32 * root(s.k) * (8 + 2 * root(s.k));
  op.buffers = {{in, s.transpose_a ? s.k : s.m, s.transpose_a ? s.m : s.k},
                {in, s.transpose_b ? s.n : s.k, s.transpose_b ? s.k : s.n},
                {out, s.m, s.n, Role::inout},
                {DType::f32, 1, s.n}};
  op.buffers[2].bound = bound;
  op.call = [s](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    GemmArgs args{b[0].view(),   b[1].view(),  b[2].view(), s.transpose_a,
                  s.transpose_b, s.accumulate, {}};
    if (s.bias) args.bias = b[3].view();
    ops.gemm(queue, args);
  };
  op.flops = 2.0 * as_double(s.m) * as_double(s.n) * as_double(s.k);
  return op;
}

OpCase attention_forward_case(const AttentionShape& s, DType dtype) {
  OpCase op;
  op.name = "attention forward " + text_of(s, dtype);
  const index_t rows = s.sequences * s.length;
  // Probabilities times standard normal values; scores carry eps32 sqrt(D).
  const double bound = 4 * kEps32 * (root(s.head_size) + 8);
  op.buffers = {{dtype, rows, (s.heads + 2 * s.kv_heads) * s.head_size},
                {dtype, rows, s.heads * s.head_size, Role::out, Content::garbage, 1, bound},
                {accumulator_of(dtype), rows, s.heads, Role::out, Content::garbage, 1, bound}};
  op.call = [s](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.attention_forward(queue, args_of(s, b[0].view()), b[1].view(), b[2].view());
  };
  op.flops = 4.0 * causal_pairs(s) * as_double(s.head_size);
  return op;
}

// The forward pass is part of the call: out and lse must belong to qkv.
OpCase attention_backward_case(const AttentionShape& s, DType dtype) {
  OpCase op = attention_forward_case(s, dtype);
  op.name = "attention forward+backward " + text_of(s, dtype);
  const index_t rows = s.sequences * s.length;
  const index_t group = s.kv_heads > 0 ? s.heads / s.kv_heads : 0;
  // A key's gradient sums over queries; out is read back in `dtype`, which moves delta.
  const double delta = dtype == DType::bf16 ? 0.02 : 0.0;
  const double bound = 16 * kEps32 * root(s.length * group) * root(s.head_size);
  op.buffers.push_back({dtype, rows, s.heads * s.head_size});
  op.buffers.push_back({dtype, rows, (s.heads + 2 * s.kv_heads) * s.head_size, Role::out,
                        Content::garbage, 1, bound + delta * root(s.head_size)});
  op.call = [s](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    const AttentionArgs args = args_of(s, b[0].view());
    ops.attention_forward(queue, args, b[1].view(), b[2].view());
    ops.attention_backward(queue, args, b[1].view(), b[2].view(), b[3].view(), b[4].view());
  };
  op.flops = 14.0 * causal_pairs(s) * as_double(s.head_size);
  return op;
}

OpCase rope_case(index_t rows, index_t length, index_t heads, index_t size, bool inverse, DType d,
                 RopeScaling scaling) {
  OpCase op;
  op.name = fmt::format("rope {}x{}x{} length {}{} {} {}", rows, heads, size, length,
                        inverse ? " inverse" : "", scaling, name_of(d));
  const RopeOptions options{.scaling = scaling, .factor = 4, .original_context = 64};
  op.buffers = {{d, rows, heads * size, Role::inout, Content::normal, 1, 8 * kEps32}};
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.rope(queue, {b[0].view(), length, size, rope_frequencies(options, size), inverse});
  };
  op.bytes = as_double(2 * rows * heads * size * size_of(d));
  return op;
}

OpCase norm_forward_case(NormKind kind, index_t rows, index_t cols, DType dtype) {
  OpCase op;
  op.name = fmt::format("{}norm forward {}x{} {}", kind == NormKind::layer ? "layer" : "rms", rows,
                        cols, name_of(dtype));
  const double bound = 4 * kEps32 * root(cols);
  op.buffers = {{dtype, rows, cols, Role::in, Content::normal, 2},
                {DType::f32, 1, cols, Role::in, Content::positive},
                {DType::f32, 1, cols},
                {DType::f32, rows, 3, Role::out, Content::garbage, 1, 64 * bound * root(cols)},
                {DType::f32, rows, 2, Role::out, Content::garbage, 1, bound},
                {dtype, rows, cols, Role::out, Content::garbage, 1, 16 * bound}};
  op.call = [kind](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.norm_stats(queue, kind, b[0].view(), b[3].view());
    ops.norm_merge(queue, kind, b[3].view(), 1, 1e-5, b[4].view());
    ConstTensorView beta;
    if (kind == NormKind::layer) beta = b[2].view();
    ops.norm_apply(queue, b[0].view(), b[4].view(), b[1].view(), beta, b[5].view());
  };
  op.bytes = as_double(3 * rows * cols * size_of(dtype));
  return op;
}

OpCase norm_whole_case(NormKind kind, index_t rows, index_t cols, bool branch, DType dtype) {
  OpCase op;
  op.name = fmt::format("{}norm of {} {}x{} {}", kind == NormKind::layer ? "layer" : "rms",
                        branch ? "a sum" : "rows", rows, cols, name_of(dtype));
  const double bound = 4 * kEps32 * root(cols);
  op.buffers = {{dtype, rows, cols, Role::in, Content::normal, 2},
                {DType::f32, 1, cols, Role::in, Content::positive},
                {DType::f32, 1, cols},
                {dtype, rows, cols, Role::inout, Content::normal, 1, kEps32},
                {DType::f32, rows, 2, Role::out, Content::garbage, 1, bound},
                {dtype, rows, cols, Role::out, Content::garbage, 1, 16 * bound},
                // Scratch: anything may be in it afterwards.
                {DType::f32, rows, 3, Role::inout, Content::normal, 1, 1e30}};
  op.call = [kind, branch](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    NormArgs args;
    args.kind = kind;
    args.x = b[0].view();
    if (branch) args.sum = b[3].view();
    args.gamma = b[1].view();
    if (kind == NormKind::layer) args.beta = b[2].view();
    args.eps = 1e-5;
    args.stats = b[6].view();
    args.moments = b[4].view();
    args.y = b[5].view();
    ops.norm_forward(queue, args);
  };
  op.bytes = as_double((branch ? 4 : 2) * rows * cols * size_of(dtype));
  return op;
}

OpCase norm_backward_case(NormKind kind, index_t rows, index_t cols, bool accumulate, DType dtype) {
  OpCase op;
  op.name = fmt::format("{}norm backward {}x{}{} {}", kind == NormKind::layer ? "layer" : "rms",
                        rows, cols, accumulate ? " +=" : "", name_of(dtype));
  const double over_cols = 16 * kEps32 * root(cols), over_rows = 16 * kEps32 * root(rows);
  op.buffers = {{dtype, rows, cols},                                 // 0 dy
                {dtype, rows, cols},                                 // 1 x
                {DType::f32, rows, 2, Role::in, Content::positive},  // 2 moments
                {DType::f32, 1, cols, Role::in, Content::positive},  // 3 gamma
                {DType::f32, rows, 2, Role::out, Content::garbage, 1, over_cols},
                {dtype, rows, cols, Role::inout, Content::normal, 1, over_cols},
                {DType::f32, 1, cols, Role::inout, Content::normal, 1, over_rows},
                {DType::f32, 1, cols, Role::inout, Content::normal, 1, over_rows}};
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    const TensorView dy = b[0].view(), x = b[1].view(), m = b[2].view(), g = b[3].view();
    TensorView dbeta;
    if (kind == NormKind::layer) dbeta = b[7].view();
    ops.norm_backward_stats(queue, dy, x, m, g, b[4].view());
    ops.norm_backward_apply(queue, kind, dy, x, m, g, b[4].view(), cols, accumulate, b[5].view(),
                            b[6].view(), dbeta);
  };
  op.bytes = as_double((accumulate ? 6 : 5) * rows * cols * size_of(dtype));
  return op;
}

OpCase norm_merge_case(NormKind kind, index_t rows, index_t parts) {
  OpCase op;
  op.name =
      fmt::format("{}norm merge {}x{}", kind == NormKind::layer ? "layer" : "rms", rows, parts);
  op.buffers = {{DType::f32, rows * parts, 3, Role::in, Content::positive, 4},
                {DType::f32, rows, 2, Role::out, Content::garbage, 1, 4 * kEps32}};
  op.prepare = [=](std::vector<Buffer>& b) {
    for (index_t r = 0; r < rows && parts > 1; r += 2) b[0].set(r, 0, 0.0);  // an empty part
  };
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.norm_merge(queue, kind, b[0].view(), parts, 1e-5, b[1].view());
  };
  op.bytes = as_double(rows * (3 * parts + 2) * 4);
  return op;
}

}  // namespace t3d::ops_test
