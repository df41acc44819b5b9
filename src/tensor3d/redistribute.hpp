// Redistribution: any layout to any other, by intersection of boxes. For the rare moves (tests,
// re-planning, checkpoints of another shape); the matmuls use one collective per operand instead.
#pragma once
#include <vector>

#include "tensor3d/context.hpp"

namespace t3d {

/// One rectangle that travels from `from` to `to` (world ranks of one cuboid).
struct Transfer {
  int from = 0, to = 0;
  Box box;
  friend bool operator==(const Transfer&, const Transfer&) = default;
};

/// Everything that rank `rank` sends or receives, ordered by (from, to). Of several holders of one
/// box (a layout that does not cut by some axis) the one that shares most coordinates with the
/// receiver sends, so each receiver gets each element once.
[[nodiscard]] std::vector<Transfer> plan_transfers(const MeshShape& shape, const Layout& from,
                                                   const Layout& to, int rank);

/// Bytes that `rank` sends to others.
[[nodiscard]] index_t redistribute_bytes(const MeshShape& shape, const Layout& from,
                                         const Layout& to, int rank, DType dtype);

/// Collective over the cuboid. Same global shape and dtype; bitwise copy.
[[nodiscard]] DistTensor redistribute(const Context& context, const DistTensor& x, Layout to);

}  // namespace t3d
