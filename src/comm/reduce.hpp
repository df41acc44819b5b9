// Elementwise reduction of several arrays in a fixed order.
#pragma once
#include <span>

#include "comm/communicator.hpp"

namespace t3d {

/// to[e] = (..(sources[0][e] op sources[1][e]) op ..) with fp32 accumulation of bf16 and fp32, fp64
/// of fp64, int32 (wrapping) of int32, and one rounding to `to`'s type at the end. `to` may be one
/// of the sources. `to_type` is `type`, fp32 for bf16 and fp16, or one of
/// these for fp32 (then `to` is none of the sources).
void reduce(ReduceOp op, DType type, std::span<const void* const> sources, DType to_type, void* to,
            index_t count);

/// Throws an internal Error unless reduce() can do it.
void check_reducible(ReduceOp op, DType type, DType to_type);

}  // namespace t3d
