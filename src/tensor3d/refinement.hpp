// The common refinement of the cuts of all replicas. Each replica cuts a tensor into boxes of its
// own; a cell is where one box of every replica meets, so that it lies whole on one rank in each.
// Its holders share the work on it: the cell is cut into parts of whole rows (columns where there
// are few rows), and each part is combined by one of them. Pure arithmetic.
//
//   replica 0: | A   | B   |      cells: | AC | BC | BD |      rows of AC: half to A, half to C
//   replica 1: | C      | D |
#pragma once
#include <memory>
#include <vector>

#include "core/box.hpp"

namespace t3d {

/// A box of a tensor and the world rank that holds it.
struct HeldBox {
  int rank = 0;
  Box box;
};

/// A part of a cell.
struct CellPart {
  Box box;
  std::shared_ptr<const std::vector<int>> holders;  // by replica; of all parts of a cell
  int owner = 0;                                    // the holder who combines it
};

/// All parts of which `rank`, of replica `replica`, holds the elements. boxes[d]: how replica d
/// cuts the tensor, at least where `rank` holds something of it. Parts that two ranks both hold
/// come in the same order for both.
[[nodiscard]] std::vector<CellPart> refine(const std::vector<std::vector<HeldBox>>& boxes, int rank,
                                           index_t replica);

}  // namespace t3d
