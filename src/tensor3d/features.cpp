#include "tensor3d/features.hpp"

#include "core/error.hpp"

namespace t3d {
namespace {

std::vector<Panel> panels_of(const Features& side, index_t part, index_t other_extent) {
  const index_t n = side.panels ? other_extent : 1;
  const Partition split =
      Partition::even("panel", side.groups.size(part), n).scaled(side.columns_per_group(), "panel");
  std::vector<Panel> result;
  for (index_t panel = 0; panel < n; ++panel)
    result.push_back({split.begin(panel), split.size(panel)});
  return result;
}

}  // namespace

index_t Features::columns_per_group() const {
  index_t sum = 0;
  for (const index_t segment : segments) sum += segment;
  return sum;
}

Partition Features::columns_partition() const {
  return groups.scaled(columns_per_group(), groups.name());
}

std::vector<Panel> LinearShape::out_panels(const MeshShape& mesh, const Coord& coord) const {
  return panels_of(out, coord.at(out_axis), mesh.extent(in_axis));
}

std::vector<Panel> LinearShape::in_panels(const MeshShape& mesh, const Coord& coord) const {
  return panels_of(in, coord.at(in_axis), mesh.extent(out_axis));
}

LinearShape linear_shape(Axis out_axis, Features out, Features in) {
  T3D_CHECK(in.segments.size() == 1, "the input of a linear has one segment");
  return {out_axis, out_axis == Axis::j ? Axis::k : Axis::j, std::move(out), std::move(in)};
}

}  // namespace t3d
