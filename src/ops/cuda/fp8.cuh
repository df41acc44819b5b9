// Operands in 8 bits: e4m3 (4 bits of exponent, 3 of mantissa, up to 448) with one scale per
// matrix, taken from its largest magnitude now, on the device. Scales are powers of two, so that
// scaling rounds nothing; infinity and NaN come out as NaN.
#pragma once
#include <cstdint>

#include "device/device.hpp"

namespace t3d::cuda {

/// Scale of one matrix and the space to find it.
class Fp8Scale {
 public:
  /// Queues the search for the largest magnitude of x (bf16, fp16).
  Fp8Scale(Device& device, Queue& queue, ConstTensorView x);
  /// Device memory: what x is multiplied by before it is rounded, and the reciprocal.
  [[nodiscard]] const float* factor() const;
  [[nodiscard]] const float* inverse() const { return factor() + 1; }

 private:
  Tensor memory_;
};

/// y = x * factor rounded to e4m3, in the numbers of x, which hold those of e4m3 exactly. y.ld must
/// be a multiple of 8 and y 16-byte aligned; columns up to ld become 0.
void fp8_round(Queue& queue, ConstTensorView x, const Fp8Scale& scale, TensorView y);

/// The same as bytes [rows, ld] of x, or of its transpose; ld a multiple of 16, columns beyond the
/// matrix become 0.
void fp8_quantise(Queue& queue, ConstTensorView x, bool transpose, const Fp8Scale& scale,
                  std::uint8_t* y, index_t ld);

}  // namespace t3d::cuda
