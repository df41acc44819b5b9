// Adapter: what a linear has beside its weight when only matrices of low rank are trained (Hu et
// al. 2021, LoRA, section 4.1). For each adapted part t of the output (q, k, v, gate, ...; rows
// N_t)
//
//   Y[:, N_t] += s X A_t^T B_t^T,   A_t [rank, in], B_t [N_t, rank],  s = alpha / rank
//
// Rank (i, o, c) of the cuboid multiplies its gathered X[M_i x K_c] with its A_t[rank x K_c], and
// the outcome with its B_t: a partial sum over c as the linear's own product is, so both travel in
// one reduce-scatter. Backward alike: dY B_t A_t is a partial sum over o of dX; dB_t and dA_t are
// partial sums over c and o, which the groups of their buckets add up. Adapters send nothing of
// activations; every rank of o repeats X A^T for its slice, every rank of c dY B.
#pragma once
#include <string>
#include <vector>

#include "tensor3d/context.hpp"
#include "tensor3d/linear_products.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

/// The adapters of all blocks by the side of the hidden slice k and of the slice j; null = none.
struct AdapterBuckets {
  ParamBucket *over_k = nullptr, *over_j = nullptr;
};

class Adapter {
 public:
  /// `segments`: the adapted ones of the output. `a`, over plane (i, out_axis), holds name +
  /// ".lora_a" [parts rank, in]; `b`, over plane (i, in_axis), name + ".lora_b" [rows of the
  /// segments, rank]. Both are gathered while they are used.
  Adapter(const Context& context, const std::string& name, const LinearShape& shape,
          const std::vector<index_t>& segments, const LoraOptions& options, ParamBucket& a,
          ParamBucket& b);

  /// Blocks as in LinearProducts. Adds to y.
  void forward(ConstTensorView x, TensorView y, index_t rows, bool rows_alone);
  /// Adds to dx. Returns s dY B, [rows, parts rank] in the activations' type.
  [[nodiscard]] Tensor input_gradient(ConstTensorView dy, TensorView dx, index_t rows);
  /// Adds to the gradients of A and B; `dlow` from input_gradient().
  void weight_gradient(ConstTensorView dy, ConstTensorView x, const Tensor& dlow, index_t rows);

 private:
  /// Columns of one part in one panel of y, and the rows of the local B that make them.
  struct Piece {
    Panel panel;                // of y
    index_t first = 0;          // column in the panel
    index_t row = 0;            // of the local B
    index_t count = 0;          // columns, rows
    index_t low = 0;            // first column of the part in u
    bool part_goes_on = false;  // an earlier piece is of the same part
  };
  [[nodiscard]] Tensor make_low(index_t rows) const;
  /// Times s, in the activations' type.
  [[nodiscard]] Tensor scaled(Tensor low) const;
  [[nodiscard]] Tensor low(ConstTensorView x, index_t rows, bool rows_alone);

  const Context& context_;
  index_t rank_, parts_;
  double factor_;
  ParamBucket &a_, &b_;
  int a_entry_, b_entry_;
  LinearProducts to_low_;  // x to u
  std::vector<Piece> pieces_;
};

}  // namespace t3d
