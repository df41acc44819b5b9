// Newton-Schulz iteration: the nearest (semi-)orthogonal matrix to X = U S V', roughly. An odd
// quintic polynomial drives all singular values towards 1; its coefficients (Jordan 2024) are
// chosen for speed, so that they end between 0.7 and 1.2 and not at 1.
//
//   X <- X / |X|_F;   repeat: A = X X', X <- a X + (b A + c A A) X
//
// A wide matrix is taken as it is and a tall one as its transpose, so that A is the smaller square.
// Sums in the matrix's dtype (fp32, fp64); where activations have 16 bits, operands of products are
// rounded to bf16.
#pragma once
#include "tensor3d/context.hpp"

namespace t3d {

/// In place on x [rows, cols], contiguous. A zero matrix stays zero. Nothing waits for the device.
void newton_schulz(const Context& context, TensorView x, index_t steps);

}  // namespace t3d
