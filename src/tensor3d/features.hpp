// Features: the columns on one side of a linear, as they are cut. Pure arithmetic.
#pragma once
#include <vector>

#include "core/mesh_shape.hpp"
#include "tensor3d/layout.hpp"

namespace t3d {

/// The features on one side of a linear: groups cut over the side's axis; every group brings
/// `segments[s]` columns to segment s (attention: q | k | v; gated MLP: gate | up; else one).
struct Features {
  Partition groups;
  std::vector<index_t> segments{1};
  bool panels = false;           // second cut by columns (whole groups) instead of by rows
  bool whole_sequences = false;  // the second cut by rows is between sequences (attention)

  [[nodiscard]] index_t columns_per_group() const;
  [[nodiscard]] index_t columns() const { return groups.length() * columns_per_group(); }
  [[nodiscard]] Partition columns_partition() const;
};

/// Columns (of X, Y) or rows (of W) of one column panel, local to a rank.
struct Panel {
  index_t first = 0, count = 0;
};

/// One linear: `out` is cut over `out_axis` and `in` over `in_axis`, {j, k} in either order.
struct LinearShape {
  Axis out_axis = Axis::j, in_axis = Axis::k;
  Features out, in;

  /// The panels that the rank at `coord` holds of a side, over the other side's axis.
  [[nodiscard]] std::vector<Panel> out_panels(const MeshShape& mesh, const Coord& coord) const;
  [[nodiscard]] std::vector<Panel> in_panels(const MeshShape& mesh, const Coord& coord) const;
};
[[nodiscard]] LinearShape linear_shape(Axis out_axis, Features out, Features in);

}  // namespace t3d
