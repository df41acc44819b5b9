#include "tensor3d/layout.hpp"

#include "core/error.hpp"

namespace t3d {

Partition DimCut::sub_split(index_t part, index_t n) const {
  return Partition::even(partition.name(), partition.size(part), n, sub_unit);
}

std::pair<index_t, index_t> DimCut::range(const MeshShape& shape, const Coord& coord) const {
  const index_t part = axis ? coord.at(*axis) : 0;
  if (axis)
    T3D_CHECK(partition.parts() == shape.extent(*axis), "{} over axis {} of {} ranks",
              partition.describe(), name_of(*axis), shape.extent(*axis));
  index_t first = partition.begin(part);
  index_t last = partition.end(part);
  if (sub_axis) {
    const Partition sub = sub_split(part, shape.extent(*sub_axis));
    last = first + sub.end(coord.at(*sub_axis));
    first += sub.begin(coord.at(*sub_axis));
  }
  return {first, last};
}

Box Layout::box(const MeshShape& shape, const Coord& coord) const {
  const auto [row0, row1] = rows.range(shape, coord);
  const auto [col0, col1] = cols.range(shape, coord);
  return {row0, col0, row1 - row0, col1 - col0};
}

bool Layout::cut_by(Axis axis) const {
  return rows.axis == axis || rows.sub_axis == axis || cols.axis == axis || cols.sub_axis == axis;
}

std::string Layout::describe() const {
  const auto axes = [](const DimCut& dim) -> std::string {
    if (!dim.axis) return "-";
    std::string text(name_of(*dim.axis));
    if (dim.sub_axis) text += fmt::format(",{}", name_of(*dim.sub_axis));
    return text;
  };
  return fmt::format("[{} x {} | {} | {}]", rows.length(), cols.length(), axes(rows), axes(cols));
}

DimCut whole(std::string name, index_t length) {
  return {Partition::even(std::move(name), length, 1), std::nullopt, std::nullopt, 1};
}

DimCut cut(Partition partition, Axis axis) { return {std::move(partition), axis, std::nullopt, 1}; }

DimCut cut(Partition partition, Axis axis, Axis sub_axis, index_t sub_unit) {
  return {std::move(partition), axis, sub_axis, sub_unit};
}

}  // namespace t3d
