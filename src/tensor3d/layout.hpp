// Layout: where each element of a global matrix lives on the cuboid. Pure arithmetic.
//
// A dimension is cut by an ordered list of axes: first by a Partition over one axis (unequal widths
// allowed), then each part evenly over a second one ("even sub-split at rest", so that collectives
// inside one group are equal-count up to one unit whatever the widths are).
//
//   residual stream X [T x H | i,j | k]: rows by tokens over i then evenly over j, columns over k
#pragma once
#include <optional>
#include <string>

#include "comm/mesh.hpp"
#include "core/box.hpp"
#include "core/partition.hpp"

namespace t3d {

/// How one dimension is cut.
struct DimCut {
  Partition partition;  // over `axis`; one part when there is no axis
  std::optional<Axis> axis;
  std::optional<Axis> sub_axis;  // each part again, evenly, in units of sub_unit
  index_t sub_unit = 1;

  [[nodiscard]] index_t length() const { return partition.length(); }
  /// The even split of part `part` over the `n` members of the second axis.
  [[nodiscard]] Partition sub_split(index_t part, index_t n) const;
  /// [first, last) held at `coord`.
  [[nodiscard]] std::pair<index_t, index_t> range(const MeshShape& shape, const Coord& coord) const;
  friend bool operator==(const DimCut&, const DimCut&) = default;
};

struct Layout {
  DimCut rows, cols;

  [[nodiscard]] Box box(const MeshShape& shape, const Coord& coord) const;
  /// Axes of the cuboid that cut neither rows nor columns: the tensor is replicated over them.
  [[nodiscard]] bool cut_by(Axis axis) const;
  /// "[4096 x 768 | i,j | k]"
  [[nodiscard]] std::string describe() const;
  friend bool operator==(const Layout&, const Layout&) = default;
};

/// Uncut dimension.
[[nodiscard]] DimCut whole(std::string name, index_t length);
[[nodiscard]] DimCut cut(Partition partition, Axis axis);
[[nodiscard]] DimCut cut(Partition partition, Axis axis, Axis sub_axis, index_t sub_unit = 1);

}  // namespace t3d
