// Routes: two tables of who holds which boxes of a tensor, and the pieces that take the first to
// the second. Pure arithmetic; sender and receiver of a message compute the same list in the same
// order.
#pragma once
#include <span>
#include <vector>

#include "tensor3d/parameters.hpp"

namespace t3d {

/// One rectangle on its way: where it lies in the sender's buffer and where in the receiver's, in
/// elements from row to row (`ld`).
struct RoutePiece {
  index_t rows = 0, cols = 0;
  index_t from_offset = 0, from_ld = 0;
  index_t to_offset = 0, to_ld = 0;
};

/// What the holder of `from` passes to the holder of `to`, of the elements within `clip`.
[[nodiscard]] std::vector<RoutePiece> route(std::span<const PlacedBox> from,
                                            std::span<const PlacedBox> to, const Box& clip);

/// The rectangle of a flat buffer [1, n].
template <class View>
[[nodiscard]] View rectangle(View flat, index_t offset, index_t rows, index_t cols, index_t ld) {
  return View(flat.at(0, offset), flat.dtype, rows, cols, ld);
}

}  // namespace t3d
