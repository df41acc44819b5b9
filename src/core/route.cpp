#include "core/route.hpp"

#include <algorithm>

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

std::vector<std::vector<Strip>> rounds_of(const std::vector<MovedBox>& boxes, index_t limit) {
  std::vector<std::vector<Strip>> rounds;
  index_t filled = limit;
  for (std::size_t which = 0; which < boxes.size(); ++which) {
    const Box& box = boxes[which].box;
    const index_t row_bytes = box.cols * boxes[which].element_bytes;
    for (index_t row = box.row0; row < box.row1() && box.cols > 0;) {
      if (filled + row_bytes > limit) {
        rounds.emplace_back();
        filled = 0;
      }
      const index_t rows = std::clamp<index_t>((limit - filled) / row_bytes, 1, box.row1() - row);
      rounds.back().push_back({which, {row, box.col0, rows, box.cols}});
      filled += rows * row_bytes;
      row += rows;
    }
  }
  return rounds;
}

}  // namespace t3d
