#include "tensor3d/linear_products.hpp"

namespace t3d {
void LinearProducts::forward(Ops& ops, Queue& queue, ConstTensorView x, ConstTensorView weight,
                             ConstTensorView bias, TensorView y, index_t rows,
                             bool rows_alone) const {
  for (const Panel& to : out) {
    bool first = true;
    for (const Panel& from : in) {
      GemmArgs args;
      args.a = panel_of(x, rows, from);
      args.b = weight.row_range(to.first, to.count).col_range(from.first, from.count);
      args.c = panel_of(y, rows, to);
      args.transpose_b = true;
      args.accumulate = !first;
      args.rows_alone = rows_alone;
      if (first && bias.data != nullptr) args.bias = bias.col_range(to.first, to.count);
      ops.gemm(queue, args);
      first = false;
    }
  }
}

void LinearProducts::input_gradient(Ops& ops, Queue& queue, ConstTensorView dy,
                                    ConstTensorView weight, TensorView dx, index_t rows,
                                    bool accumulate) const {
  for (const Panel& to : in) {
    bool first = !accumulate;
    for (const Panel& from : out) {
      GemmArgs args;
      args.a = panel_of(dy, rows, from);
      args.b = weight.row_range(from.first, from.count).col_range(to.first, to.count);
      args.c = panel_of(dx, rows, to);
      args.accumulate = !first;
      ops.gemm(queue, args);
      first = false;
    }
  }
}

void LinearProducts::weight_gradient(Ops& ops, Queue& queue, ConstTensorView dy, ConstTensorView x,
                                     TensorView dweight, bool accumulate, index_t rows) const {
  for (const Panel& to : out) {
    for (const Panel& from : in) {
      GemmArgs args;
      args.a = panel_of(dy, rows, to);
      args.b = panel_of(x, rows, from);
      args.c = dweight.row_range(to.first, to.count).col_range(from.first, from.count);
      args.transpose_a = true;
      args.accumulate = accumulate;
      ops.gemm(queue, args);
    }
  }
}

}  // namespace t3d
