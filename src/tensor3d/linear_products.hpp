// The three matrix products of a linear on one rank, panel by panel (tensor3d/features.hpp). What
// Linear3d multiplies between its messages; the probe times the same calls.
#pragma once
#include <utility>
#include <vector>

#include "core/mesh_shape.hpp"
#include "ops/ops.hpp"
#include "tensor3d/features.hpp"

namespace t3d {

/// Panel of a block [rows x columns] that consists of panels, each [rows x panel], one after
/// another.
template <class View>
[[nodiscard]] View panel_of(View stacked, index_t rows, const Panel& panel) {
  return {stacked.flat().at(0, rows * panel.first), stacked.dtype, rows, panel.count};
}

/// x [rows x columns of in] and y [rows x columns of out] are column panels stacked one after
/// another, each [rows x panel]; weight [columns of out, columns of in].
struct LinearProducts {
  LinearProducts(const LinearShape& shape, const MeshShape& mesh, const Coord& coord)
      : out(shape.out_panels(mesh, coord)), in(shape.in_panels(mesh, coord)) {}
  LinearProducts(std::vector<Panel> out_, std::vector<Panel> in_)
      : out(std::move(out_)), in(std::move(in_)) {}

  /// y = x W^T, and `bias` [1, columns of out] where it has data. Sums over several panels of `in`
  /// stay in y's type. `rows_alone`: as in GemmArgs.
  void forward(Ops& ops, Queue& queue, ConstTensorView x, ConstTensorView weight,
               ConstTensorView bias, TensorView y, index_t rows, bool rows_alone = false) const;
  /// dx (+)= dy W
  void input_gradient(Ops& ops, Queue& queue, ConstTensorView dy, ConstTensorView weight,
                      TensorView dx, index_t rows, bool accumulate = false) const;
  /// dweight (+)= dy^T x
  void weight_gradient(Ops& ops, Queue& queue, ConstTensorView dy, ConstTensorView x,
                       TensorView dweight, bool accumulate, index_t rows) const;

  std::vector<Panel> out, in;
};

}  // namespace t3d
