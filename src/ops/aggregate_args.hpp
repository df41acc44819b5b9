// Arguments of the verbs that aggregate gradients of replicas and step along directions.
#pragma once
#include "core/types.hpp"
#include "device/tensor_view.hpp"

namespace t3d {

/// Columns [begin, end) of a flat buffer belong to `group`. Segments ascend and do not overlap.
struct Segment {
  index_t begin = 0, end = 0;
  index_t group = 0;
};

enum class AggregateRule {
  mean,    // sum of w_i g_i / sum of w_i
  sum,     // sum of w_i g_i
  adasum,  // the tree of ops/adasum_tree.hpp
};

/// From Gram matrices to coefficients, by group. A vector is live when its weight is above 0 and
/// its own entry K_ii is finite in every group; the others have coefficient 0 everywhere. Leaves of
/// adasum: S(w_i) with the group's noise ratio (expected_gain), or w_i while that is not known or
/// `noise_leaf` is false, or 1 where `plain_leaf` is set.
struct AdasumArgs {
  ConstTensorView gram;     // [groups, n(n+1)/2] fp64: packed upper triangles
  ConstTensorView weights;  // [1, n] fp64: samples / reference batch
  double unscale = 1;       // the vectors' factor to take away: K counts times its square
  AggregateRule rule = AggregateRule::adasum;
  bool noise_leaf = true;
  bool plain_leaf = false;  // the vectors are results of trees already and enter as they are
  double noise_decay = 0.9;
  /// [groups, 2] fp64, in and out: (signal, noise) of estimate_noise, as exponential means
  /// x = decay x + (1 - decay) new, from 0; both 0 = not known yet. Updated where two are live.
  TensorView noise;
  double gain_exponent = 1;
  TensorView coefficients;  // [groups, n] fp64
  /// [1, groups] fp64: S^gain_exponent with S = <adasum, mean> / |mean|^2 within [min(1,W),
  /// max(1,W)], W = sum of live weights, whatever the rule; 1 where the mean is 0.
  TensorView gains;
  TensorView summary;  // [1, kSummary + n] fp64, see AdasumSummary
};

/// Columns of AdasumArgs::summary; after them a 1 for every live vector, else 0.
namespace adasum_summary {
enum : index_t {
  mean_squares,  // |weighted mean|^2 over all groups, unscaled
  signal,        // sums over groups of `noise` after the update
  noise,
  gain,     // mean over groups of S, weighted by |mean|^2; 1 where that is 0
  weights,  // W
  columns
};
}  // namespace adasum_summary

/// The gain of a whole mean gradient from sums of squares alone (McCandlish et al. 2018, appendix
/// A, for uneven batches): noise = (A - W B)/(n - 1), signal = B - noise/W with A = sum w_i
/// |g_i|^2, B = |mean|^2, n weights above 0, W their sum; S = expected_gain(W, noise/signal), 1 for
/// n = 1.
struct FlatGainArgs {
  ConstTensorView leaf_squares, mean_squares;  // [1, groups] fp64: A, B
  ConstTensorView weights;                     // [1, n] fp64
  double unscale = 1;                          // as in AdasumArgs
  double gain_exponent = 1;
  TensorView gains;    // [1, groups] fp64
  TensorView summary;  // as AdasumArgs::summary; all leaves with a weight count as live
};

/// host * device: a factor of which a part may be known on the device only.
struct Factor {
  double host = 1;
  ConstTensorView device;  // [1,1] fp64; empty data = 1
};

}  // namespace t3d
