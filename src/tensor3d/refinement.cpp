#include "tensor3d/refinement.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/partition.hpp"

namespace t3d {
namespace {

struct Cell {
  Box box;
  std::vector<int> holders;
};

// The cells cut once more, by the boxes of the next replica. Most lie whole in one box: they only
// get another holder.
std::vector<Cell> cut(std::vector<Cell> cells, const std::vector<HeldBox>& boxes) {
  std::vector<Cell> result;
  for (Cell& cell : cells)
    for (const HeldBox& held : boxes) {
      const Box common = intersect(cell.box, held.box);
      if (common.count() == 0) continue;
      const bool whole = common == cell.box;
      Cell piece{common, whole ? std::move(cell.holders) : cell.holders};
      piece.holders.push_back(held.rank);
      result.push_back(std::move(piece));
      if (whole) break;
    }
  return result;
}

index_t count_of(const std::vector<Cell>& cells) {
  index_t sum = 0;
  for (const Cell& cell : cells) sum += cell.box.count();
  return sum;
}

// Extra rows go to another holder in every cell.
void deal(Cell& cell, std::vector<CellPart>& parts) {
  const auto n = static_cast<index_t>(cell.holders.size());
  const Box& box = cell.box;
  const auto holders = std::make_shared<const std::vector<int>>(std::move(cell.holders));
  const bool by_rows = box.rows >= n;
  const Partition split = Partition::even("cell", by_rows ? box.rows : box.cols, n);
  for (index_t at = 0; at < n; ++at) {
    Box part = box;
    (by_rows ? part.row0 : part.col0) += split.begin(at);
    (by_rows ? part.rows : part.cols) = split.size(at);
    const index_t owner = (box.row0 + box.col0 + at) % n;
    if (part.count() > 0)
      parts.push_back({part, holders, (*holders)[static_cast<std::size_t>(owner)]});
  }
}

}  // namespace

std::vector<CellPart> refine(const std::vector<std::vector<HeldBox>>& boxes, int rank,
                             index_t replica) {
  std::vector<Cell> cells;
  for (const HeldBox& held : boxes[static_cast<std::size_t>(replica)])
    if (held.rank == rank) cells.push_back({held.box, {}});
  const index_t own = count_of(cells);
  // Cells and holders are the same whoever asks: by replica, in order.
  for (const std::vector<HeldBox>& others : boxes) cells = cut(std::move(cells), others);
  T3D_CHECK(count_of(cells) == own, "{} of {} elements are held by every replica", count_of(cells),
            own);
  std::vector<CellPart> parts;
  for (Cell& cell : cells) deal(cell, parts);
  std::sort(parts.begin(), parts.end(), [](const CellPart& a, const CellPart& b) {
    return std::pair(a.box.row0, a.box.col0) < std::pair(b.box.row0, b.box.col0);
  });
  return parts;
}

}  // namespace t3d
