// Stable sort of token ids by table row on the device: what the gradient of a table needs to add in
// a fixed order without atomics and without the host.
#pragma once
#include "device/device.hpp"

namespace t3d::cuda {

/// Positions in [0, count) ordered by the row of their id, equal rows in order of position. Ids
/// outside [row0, row0 + rows) get row `rows`, so they come last.
struct SortedIds {
  Tensor rows;       // [1, count] int32
  Tensor positions;  // [1, count] int32
};
[[nodiscard]] SortedIds sort_ids(Device& device, Queue& queue, const ConstTensorView& ids,
                                 index_t row0, index_t rows);

}  // namespace t3d::cuda
