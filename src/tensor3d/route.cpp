#include "tensor3d/route.hpp"

namespace t3d {
namespace {

index_t offset_in(const PlacedBox& place, const Box& box) {
  return place.offset + (box.row0 - place.box.row0) * place.box.cols + box.col0 - place.box.col0;
}

}  // namespace

std::vector<RoutePiece> route(std::span<const PlacedBox> from, std::span<const PlacedBox> to,
                              const Box& clip) {
  std::vector<RoutePiece> pieces;
  for (const PlacedBox& source : from) {
    const Box available = intersect(source.box, clip);
    if (available.empty()) continue;
    for (const PlacedBox& target : to) {
      const Box common = intersect(available, target.box);
      if (common.empty()) continue;
      pieces.push_back({common.rows, common.cols, offset_in(source, common), source.box.cols,
                        offset_in(target, common), target.box.cols});
    }
  }
  return pieces;
}

}  // namespace t3d
