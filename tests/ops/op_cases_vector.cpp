// Cases: activations, embedding, cross-entropy, element-by-element verbs, sums, optimizers.
#include <fmt/format.h>

#include <cmath>

#include "ops/op_case.hpp"

namespace t3d::ops_test {
namespace {

double root(index_t n) { return std::sqrt(static_cast<double>(n) + 1.0); }
double as_double(index_t n) { return static_cast<double>(n); }

std::string text(std::string_view verb, index_t rows, index_t cols, DType dtype) {
  return fmt::format("{} {}x{} {}", verb, rows, cols, name_of(dtype));
}

/// ids or targets with values on both sides of the table [first, first + n), some negative.
BufferSpec ids_for(index_t rows, index_t n) {
  return {DType::i32, 1, rows, Role::in, Content::integer, as_double(n) + 2};
}

std::string text(DeviceNumbers device) {
  return fmt::format("{}{}", device.scale ? ", scale on device" : "",
                     device.lr ? ", rate on device" : "");
}

/// Of a case whose first buffers are weight, m, v and gradient.
AdamWArgs adamw_args(std::vector<Buffer>& b) {
  AdamWArgs args;
  args.weight = b[0].view(), args.m = b[1].view(), args.v = b[2].view(), args.grad = b[3].view();
  args.lr = 1e-3, args.beta1 = 0.9, args.beta2 = 0.95, args.eps = 1e-8;
  args.decay = 0.1, args.grad_scale = 0.5, args.step = 3;
  return args;
}

BufferSpec scalar() { return {DType::f64, 1, 1, Role::in, Content::positive, 1}; }

}  // namespace

OpCase activation_forward_case(Activation kind, index_t rows, index_t cols, DType dtype) {
  const bool gelu = kind == Activation::gelu_tanh;
  OpCase op;
  op.name = text(gelu ? "gelu forward" : "swiglu forward", rows, cols, dtype);
  op.buffers = {{dtype, rows, gelu ? cols : 2 * cols, Role::in, Content::normal, 3},
                {dtype, rows, cols, Role::out, Content::garbage, 1, 64 * kEps32}};
  op.call = [kind](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.activation_forward(queue, kind, b[0].view(), b[1].view());
  };
  op.bytes = as_double((gelu ? 2 : 3) * rows * cols * size_of(dtype));
  return op;
}

OpCase activation_backward_case(Activation kind, index_t rows, index_t cols, DType dtype) {
  const bool gelu = kind == Activation::gelu_tanh;
  const index_t width = gelu ? cols : 2 * cols;
  OpCase op;
  op.name = text(gelu ? "gelu backward" : "swiglu backward", rows, cols, dtype);
  op.buffers = {{dtype, rows, width, Role::in, Content::normal, 3},
                {dtype, rows, cols},
                {dtype, rows, width, Role::out, Content::garbage, 1, 64 * kEps32}};
  if (!gelu) op.buffers[2].bound *= 4;  // |dy up| reaches 48, and its factor may cancel
  op.call = [kind](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.activation_backward(queue, kind, b[0].view(), b[1].view(), b[2].view());
  };
  op.bytes = as_double((gelu ? 3 : 5) * rows * cols * size_of(dtype));
  return op;
}

OpCase embed_case(index_t rows, index_t cols, index_t table_rows, DType dtype) {
  OpCase op;
  op.name = text("embed gather", rows, cols, dtype);
  op.buffers = {ids_for(rows, table_rows),
                {DType::f32, table_rows, cols},
                {dtype, rows, cols, Role::out, Content::garbage}};
  op.call = [](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.embed_gather(queue, b[0].view(), 1, b[1].view(), b[2].view());
  };
  op.bytes = as_double(rows * cols * (4 + size_of(dtype)));
  return op;
}

OpCase scatter_case(index_t rows, index_t cols, index_t table_rows, DType dtype) {
  OpCase op;
  op.name = text("embed scatter add", rows, cols, dtype);
  op.buffers = {
      ids_for(rows, table_rows),
      {dtype, rows, cols},
      {DType::f32, table_rows, cols, Role::inout, Content::normal, 1, 4 * kEps32 * root(rows)}};
  op.call = [](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.embed_scatter_add(queue, b[0].view(), 1, b[1].view(), b[2].view());
  };
  op.bytes = as_double(rows * cols * (8 + size_of(dtype)));
  return op;
}

OpCase positions_case(index_t rows, index_t cols, index_t length, index_t first, DType dtype) {
  OpCase op;
  op.name = text("add positions", rows, cols, dtype);
  op.buffers = {{DType::f32, length, cols}, {dtype, rows, cols, Role::inout}};
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.add_positions(queue, b[0].view(), first, length, b[1].view());
  };
  op.bytes = as_double(2 * rows * cols * size_of(dtype));
  return op;
}

OpCase xent_stats_case(index_t rows, index_t cols, index_t col0, DType dtype) {
  OpCase op;
  op.name = text("xent stats", rows, cols, dtype);
  op.buffers = {{dtype, rows, cols, Role::in, Content::normal, 3},
                ids_for(rows, cols),
                {DType::f32, rows, 3, Role::out, Content::garbage, 1, 8 * kEps32 * root(cols)}};
  op.call = [col0](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.xent_stats(queue, b[0].view(), b[1].view(), col0, b[2].view());
  };
  op.bytes = as_double(rows * cols * size_of(dtype));
  return op;
}

OpCase xent_merge_case(index_t rows, index_t parts) {
  OpCase op;
  op.name = fmt::format("xent merge {} rows {} parts", rows, parts);
  op.buffers = {{DType::f32, rows * parts, 3, Role::in, Content::positive, 5},
                ids_for(rows, 10),
                {DType::f32, 1, rows, Role::out, Content::garbage, 1, 4 * kEps32},
                {DType::f32, 1, rows, Role::out, Content::garbage, 1, 8 * kEps32}};  // of lse
  op.prepare = [=](std::vector<Buffer>& b) {
    for (index_t r = 0; r < rows && parts > 1; ++r) {  // the statistics of an empty slice
      b[0].set(r, 0, -HUGE_VAL);
      b[0].set(r, 1, 0.0);
      b[0].set(r, 2, 0.0);
    }
  };
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.xent_merge(queue, b[0].view(), parts, b[1].view(), b[2].view(), b[3].view());
  };
  op.bytes = as_double(rows * (3 * parts + 2) * 4);
  return op;
}

OpCase xent_grad_case(index_t rows, index_t cols, index_t col0, DType dtype) {
  OpCase op;
  op.name = text("xent grad", rows, cols, dtype);
  op.buffers = {{dtype, rows, cols, Role::inout, Content::normal, 1, 16 * kEps32},
                ids_for(rows, cols),
                {DType::f32, 1, rows, Role::in, Content::positive, 8}};
  op.call = [col0](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.xent_grad(queue, b[0].view(), b[1].view(), col0, b[2].view(), 0.125);
  };
  // exp(logit - lse) reaches exp(4): relative error of exp times that.
  op.buffers[0].bound = 64 * kEps32;
  op.bytes = as_double(2 * rows * cols * size_of(dtype));
  return op;
}

OpCase fill_case(index_t rows, index_t cols, DType dtype) {
  OpCase op;
  op.name = text("fill", rows, cols, dtype);
  op.buffers = {{dtype, rows, cols, Role::out, Content::garbage}};
  op.call = [](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.fill(queue, b[0].view(), 0.3);
  };
  op.bytes = as_double(rows * cols * size_of(dtype));
  return op;
}

OpCase copy_case(index_t rows, index_t cols, DType from, DType to) {
  OpCase op;
  op.name = text(fmt::format("copy to {} of", name_of(to)), rows, cols, from);
  op.buffers = {{from, rows, cols}, {to, rows, cols, Role::out, Content::garbage}};
  op.call = [](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.copy(queue, b[0].view(), b[1].view());
  };
  op.bytes = as_double(rows * cols * (size_of(from) + size_of(to)));
  return op;
}

OpCase add_case(index_t rows, index_t cols, DType from, DType to) {
  OpCase op;
  op.name = text(fmt::format("add to {} of", name_of(to)), rows, cols, from);
  op.buffers = {{from, rows, cols}, {to, rows, cols, Role::inout}};
  op.call = [](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.add(queue, b[0].view(), b[1].view());
  };
  op.bytes = as_double(rows * cols * (size_of(from) + 2 * size_of(to)));
  return op;
}

OpCase scale_case(index_t rows, index_t cols, DType dtype) {
  OpCase op;
  op.name = text("scale", rows, cols, dtype);
  op.buffers = {{dtype, rows, cols, Role::inout}};
  op.call = [](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.scale(queue, b[0].view(), 1.7);
  };
  op.bytes = as_double(2 * rows * cols * size_of(dtype));
  return op;
}

OpCase column_sums_case(index_t rows, index_t cols, DType dtype) {
  OpCase op;
  op.name = text("column sums", rows, cols, dtype);
  op.buffers = {{dtype, rows, cols},
                {DType::f32, 1, cols, Role::inout, Content::normal, 1, 4 * kEps32 * root(rows)}};
  op.call = [](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.column_sums(queue, b[0].view(), b[1].view());
  };
  op.bytes = as_double(rows * cols * size_of(dtype));
  return op;
}

OpCase dropout_case(index_t rows, index_t cols, double p, DType dtype) {
  OpCase op;
  op.name = text(fmt::format("dropout {}", p), rows, cols, dtype);
  op.buffers = {{dtype, rows, cols, Role::inout}};
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.dropout(queue, {b[0].view(), {7, 0x123456789abcdefULL}, 5, 3, cols + 6, p});
  };
  op.bytes = as_double(2 * rows * cols * size_of(dtype));
  return op;
}

OpCase random_init_case(index_t rows, index_t cols, DType dtype) {
  OpCase op;
  op.name = text("random init", rows, cols, dtype);
  op.buffers = {{dtype, rows, cols, Role::out, Content::garbage}};
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.random_init(queue, b[0].view(), {3, stream_of("w")}, 2, 1, cols + 4, 0.02);
  };
  op.bytes = as_double(rows * cols * size_of(dtype));
  return op;
}

OpCase sum_case(index_t count, bool squares, DType dtype) {
  OpCase op;
  op.name = text(squares ? "sum of squares" : "sum", 1, count, dtype);
  op.buffers = {{dtype, 1, count},
                {DType::f64, 1, 1, Role::inout, Content::normal, 1, 1e-12 * as_double(count + 1)}};
  op.call = [squares](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    if (squares)
      ops.sum_squares(queue, b[0].view(), b[1].view());
    else
      ops.sum(queue, b[0].view(), b[1].view());
  };
  op.bytes = as_double(count * size_of(dtype));
  return op;
}

OpCase adamw_case(index_t count, DType grad, DeviceNumbers device) {
  OpCase op;
  op.name = text(fmt::format("adamw{}", text(device)), 1, count, grad);
  op.buffers = {{DType::f32, 1, count, Role::inout, Content::normal, 1, 4 * kEps32},
                {DType::f32, 1, count, Role::inout, Content::normal, 0.1, 4 * kEps32},
                {DType::f32, 1, count, Role::inout, Content::positive, 0.1, 4 * kEps32},
                {grad, 1, count},
                scalar(),
                scalar()};
  op.call = [device](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    AdamWArgs args = adamw_args(b);
    if (device.scale) args.device_scale = b[4].view();
    if (device.lr) args.device_lr = b[5].view();
    ops.adamw(queue, args);
  };
  op.bytes = as_double(count * (24 + size_of(grad)));
  return op;
}

OpCase adam_direction_case(index_t count, DType grad, bool in_place) {
  OpCase op;
  op.name = text(in_place ? "adam direction in place" : "adam direction", 1, count, grad);
  op.buffers = {{DType::f32, 1, count},
                {DType::f32, 1, count, Role::inout, Content::normal, 0.1, 4 * kEps32},
                {DType::f32, 1, count, Role::inout, Content::positive, 0.1, 4 * kEps32},
                {grad, 1, count},
                scalar(),
                {DType::f32, 1, count, Role::out, Content::garbage, 1, 16 * kEps32}};
  if (in_place) {
    op.buffers[3] = {DType::f32, 1, count, Role::inout, Content::normal, 1, 16 * kEps32};
    op.buffers.pop_back();
  }
  op.call = [in_place](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    AdamWArgs args = adamw_args(b);
    args.device_scale = b[4].view();
    ops.adam_direction(queue, args, b[in_place ? 3 : 5].view());
  };
  op.bytes = as_double(count * (24 + size_of(op.buffers[3].dtype)));
  return op;
}

OpCase sgd_case(index_t count, bool nesterov, DType grad, DeviceNumbers device) {
  OpCase op;
  op.name = text(fmt::format("sgd{}{}", nesterov ? " nesterov" : "", text(device)), 1, count, grad);
  op.buffers = {{DType::f32, 1, count, Role::inout, Content::normal, 1, 4 * kEps32},
                {DType::f32, 1, count, Role::inout, Content::normal, 1, 8 * kEps32},
                {grad, 1, count},
                scalar(),
                scalar()};
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    SgdArgs args{b[0].view(), b[1].view(), b[2].view(), 1e-2, 0.9, 0.1, 0.5, nesterov, {}, {}};
    if (device.scale) args.device_scale = b[3].view();
    if (device.lr) args.device_lr = b[4].view();
    ops.sgd(queue, args);
  };
  op.bytes = as_double(count * (16 + size_of(grad)));
  return op;
}

OpCase clip_factor_case(double squares, double clip_norm) {
  OpCase op;
  op.name = fmt::format("clip factor of {} to {}", squares, clip_norm);
  op.buffers = {scalar(), {DType::f64, 1, 1, Role::out, Content::garbage, 1, 1e-15}};
  op.prepare = [=](std::vector<Buffer>& b) { b[0].set(0, 0, squares); };
  op.call = [=](Ops& ops, Queue& queue, std::vector<Buffer>& b) {
    ops.clip_factor(queue, b[0].view(), clip_norm, b[1].view());
  };
  op.bytes = 16;
  return op;
}

}  // namespace t3d::ops_test
