// Cases: what one new row of each of several sequences needs.
#include <fmt/format.h>

#include <cmath>

#include "ops/op_case.hpp"

namespace t3d::ops_test {
namespace {

double root(index_t n) { return std::sqrt(static_cast<double>(n) + 1.0); }
double as_double(index_t n) { return static_cast<double>(n); }

void set_numbers(Buffer& buffer, const std::function<index_t(index_t)>& number) {
  for (index_t at = 0; at < buffer.spec().cols; ++at) buffer.set(0, at, as_double(number(at)));
}

}  // namespace

OpCase row_product_case(const GemmShape& s, DType in, DType out) {
  OpCase op;
  op.name = fmt::format("rows {}x{}x{}{}{} {}->{}", s.m, s.n, s.k, s.accumulate ? " +=" : "",
                        s.bias ? " bias" : "", name_of(in), name_of(out));
  op.buffers = {{in, s.m, s.k}, {in, s.n, s.k}, {out, s.m, s.n, Role::inout}, {DType::f32, 1, s.n}};
  op.buffers[2].bound = kEps32 * root(s.k) * (8 + 2 * root(s.k));
  op.call = [s](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    GemmArgs args{b[0].view(), b[1].view(), b[2].view(), false, true, s.accumulate, {}, true};
    if (s.bias) args.bias = b[3].view();
    ops.gemm(queue, args);
  };
  op.flops = 2.0 * as_double(s.m) * as_double(s.n) * as_double(s.k);
  op.bytes = as_double(s.n * s.k * size_of(in));
  return op;
}

OpCase kept_attention_case(const KeptShape& s, DType dtype) {
  OpCase op;
  op.name = fmt::format("kept attention {} rows of {}x{} heads {}/{} size {} {}", s.rows,
                        s.sequences, s.capacity, s.heads, s.kv_heads, s.head_size, name_of(dtype));
  const double bound = 4 * kEps32 * (root(s.head_size) + 8);
  op.buffers = {{dtype, s.rows, s.heads * s.head_size},
                {dtype, s.sequences * s.capacity, s.kv_heads * s.head_size},
                {dtype, s.sequences * s.capacity, s.kv_heads * s.head_size},
                {DType::i32, 1, s.rows},
                {dtype, s.rows, s.heads * s.head_size, Role::out, Content::garbage, 1, bound}};
  // Row t is of sequence t; the positions are all over the capacity, the first and the last too.
  op.prepare = [s](std::vector<Buffer>& b) {
    set_numbers(b[3], [&](index_t t) {
      if (t >= s.sequences || t % 4 == 2) return index_t{-1};
      const index_t position = t == 0 ? s.capacity - 1 : t == 1 ? 0 : 37 * t % s.capacity;
      return t * s.capacity + position;
    });
  };
  op.call = [s](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.kept_attention(queue,
                       {b[0].view(), b[1].view(), b[2].view(), b[3].view(), s.capacity, s.heads,
                        s.kv_heads, s.head_size},
                       b[4].view());
  };
  op.bytes = as_double(s.sequences * s.capacity * s.kv_heads * s.head_size * size_of(dtype));
  return op;
}

OpCase rope_positions_case(index_t rows, index_t heads, index_t size, DType dtype) {
  OpCase op;
  op.name = fmt::format("rope {}x{}x{} own positions {}", rows, heads, size, name_of(dtype));
  op.buffers = {{dtype, rows, heads * size, Role::inout, Content::normal, 1, 8 * kEps32},
                {DType::i32, 1, rows}};
  op.prepare = [](std::vector<Buffer>& b) {
    set_numbers(b[1], [](index_t t) { return 8191 * t % 1021; });
  };
  op.call = [size](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.rope(queue, {b[0].view(), 1, size, rope_frequencies({}, size), false, b[1].view()});
  };
  op.bytes = as_double(2 * rows * heads * size * size_of(dtype));
  return op;
}

OpCase put_rows_case(index_t rows, index_t cols, DType from, DType to) {
  OpCase op;
  op.name = fmt::format("put rows {}x{} {}->{}", rows, cols, name_of(from), name_of(to));
  op.buffers = {{DType::i32, 1, rows}, {from, rows, cols}, {to, 2 * rows, cols, Role::inout}};
  op.prepare = [rows](std::vector<Buffer>& b) {
    set_numbers(b[0],
                [rows](index_t t) { return t % 3 == 1 ? index_t{-1} : 2 * rows - 1 - 2 * t; });
  };
  op.call = [](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.put_rows(queue, b[0].view(), b[1].view(), b[2].view());
  };
  op.bytes = as_double(rows * cols * (size_of(from) + size_of(to)));
  return op;
}

}  // namespace t3d::ops_test
