// A checkpoint written by one process that never holds more of it than a strip: for what comes from
// elsewhere (import). Runs save with save_checkpoint().
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.hpp"

namespace t3d {

/// Puts the numbers of a box of a tensor, row by row, into `out`.
using FillBox = std::function<void(const TensorPart& tensor, const Box& box, void* out)>;

/// Writes DIR/step-%08d as save_checkpoint() does. `tensors` are whole (one box each) and have no
/// data; `fill` is called for strips of at most `strip_bytes`, or one row. What it throws, and
/// Error(io), leaves no folder behind. Returns the path.
std::string write_checkpoint(const CheckpointOptions& options, const CheckpointState& state,
                             const std::vector<TensorPart>& tensors, const FillBox& fill,
                             index_t strip_bytes = index_t{16} << 20);

}  // namespace t3d
