// Routes: two tables of who holds which boxes of a tensor, and the pieces that take the first to
// the second; rounds, so that what travels at once is bounded. Pure arithmetic; sender and receiver
// of a message compute the same list in the same order. For the layers' layouts, reshapes, and
// checkpoints.
#pragma once
#include <span>
#include <vector>

#include "core/box.hpp"

namespace t3d {

/// One rectangle on its way: where it lies in the sender's buffer and where in the receiver's, in
/// elements from row to row (`ld`).
struct RoutePiece {
  index_t rows = 0, cols = 0;
  index_t from_offset = 0, from_ld = 0;
  index_t to_offset = 0, to_ld = 0;
  [[nodiscard]] index_t count() const { return rows * cols; }
};

/// What the holder of `from` passes to the holder of `to`, of the elements within `clip`.
[[nodiscard]] std::vector<RoutePiece> route(std::span<const PlacedBox> from,
                                            std::span<const PlacedBox> to, const Box& clip);

/// What travels in one round, unless more ranks than one take part.
inline constexpr index_t kRoundBytes = index_t{64} << 20;

/// A box to be moved.
struct MovedBox {
  Box box;
  index_t element_bytes = 0;
};
/// Some rows of box number `which`.
struct Strip {
  std::size_t which = 0;
  Box box;
};
/// All of `boxes` in its order, in rounds of at most `limit` bytes, but at least one row each.
[[nodiscard]] std::vector<std::vector<Strip>> rounds_of(const std::vector<MovedBox>& boxes,
                                                        index_t limit);

/// The rectangle of a flat buffer [1, n].
template <class View>
[[nodiscard]] View rectangle(View flat, index_t offset, index_t rows, index_t cols, index_t ld) {
  return View(flat.at(0, offset), flat.dtype, rows, cols, ld);
}

}  // namespace t3d
