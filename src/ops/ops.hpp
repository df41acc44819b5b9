// Ops: everything a device can do. `reference` is the definition (plain loops, fp64 sums), `cpu`
// is fast; a GPU back end fulfils the same contract, so nothing here assumes host memory.
//
// Conventions. Activation dtype: fp64 (reference only), fp32, bf16 or fp16 (reference
// and GPU). Vectors (bias, norm weights),
// statistics and gradients of parameters have accumulator_of(activation). All views row-major with
// any leading dimension unless "contiguous" is said. Any extent may be 0. Every verb is ordered by
// `queue`; outputs never overlap inputs unless "in place" is said. `accumulate` adds to the output.
// Extents in comments: rows; H a slice of the hidden dimension; D head size; V vocabulary slice.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/choices.hpp"
#include "core/random.hpp"
#include "core/rope.hpp"
#include "device/device.hpp"
#include "device/tensor_view.hpp"
#include "ops/aggregate_args.hpp"

namespace t3d {

/// C[M,N] (+)= op(A)[M,K] op(B)[K,N] (+ bias[N] to every row). op is the transpose where the flag
/// is set, so A is [K,M] with transpose_a and B is [N,K] with transpose_b. A and B share one dtype;
/// C has that dtype or fp32. Sums in fp32 (fp64 for fp64 and in reference). 2 M N K flops.
struct GemmArgs {
  ConstTensorView a, b;
  TensorView c;
  bool transpose_a = false, transpose_b = false;
  bool accumulate = false;
  ConstTensorView bias;  // [1,N] accumulator dtype; empty data = none
  /// A row of C comes from the same operations in the same order whatever the other rows are and
  /// however many. For few rows: the cost is that of reading B. Only without transpose_a and with
  /// transpose_b.
  bool rows_alone = false;
};

/// Softmax attention over whole sequences. qkv [sequences*length, (heads + 2*kv_heads)*D], columns
/// q heads | k heads | v heads; query head h uses kv head h / (heads/kv_heads). Scale 1/sqrt(D).
/// Memory beyond the arguments is O(length) per head (flash style).
struct AttentionArgs {
  ConstTensorView qkv;
  index_t sequences = 0, length = 0, heads = 0, kv_heads = 0, head_size = 0;
  bool causal = true;
};

/// One new row of each of several sequences attends to itself and to what is kept of those before
/// it. Row t is that of the kept row places[t] = sequence * capacity + position, which is there
/// already, and sees the kept rows sequence * capacity .. places[t]. places[t] < 0: no sequence,
/// out is 0. Heads and scale as in AttentionArgs. The result of a row does not depend on the
/// others.
struct KeptAttentionArgs {
  ConstTensorView queries;       // [rows, heads*D]
  ConstTensorView keys, values;  // [sequences*capacity, kv_heads*D]
  ConstTensorView places;        // [1, rows] int32
  index_t capacity = 0, heads = 0, kv_heads = 0, head_size = 0;
};

/// A row's position in its sequence is row % length, or positions[row] where there are any.
struct RopeArgs {
  TensorView heads;  // [rows, n*D] in place: each head's pairs (d, d + D/2) are rotated
  index_t length = 0, head_size = 0;
  RopeFrequencies frequencies;
  bool inverse = false;         // rotate back (the backward pass)
  ConstTensorView positions{};  // [1, rows] int32; empty data = none
};

/// A norm whose hidden dimension is not cut, with the residual addition before it:
///   sum = x + branch (rounded to its dtype);  moments, y = norm(sum)
struct NormArgs {
  NormKind kind = NormKind::layer;
  ConstTensorView x;      // [rows, H]
  TensorView sum;         // holds the branch, becomes the sum; empty data = no branch, norm of x
  ConstTensorView gamma;  // [1, H]
  ConstTensorView beta;   // [1, H]; empty data = none
  double eps = 0;
  TensorView stats;       // [rows, 3] scratch
  TensorView moments, y;  // [rows, 2]; [rows, H]
};

/// Mask and scale by 1/(1-p): element (r, c) is kept iff random_uniform(key, (row0+r)*global_cols +
/// col0 + c) >= p. In place; the backward pass is the same call on the gradient.
struct DropoutArgs {
  TensorView x;
  RandomKey key;
  index_t row0 = 0, col0 = 0, global_cols = 0;
  double p = 0;
};

/// Decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2), bias correction by `step` >= 1:
///   m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
///   w -= lr (m / (1-b1^step) / (sqrt(v / (1-b2^step)) + eps) + decay w),   g = grad * grad_scale
struct AdamWArgs {
  TensorView weight, m, v;  // contiguous, accumulator dtype
  ConstTensorView grad;
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, decay = 0, grad_scale = 1;
  index_t step = 1;
  ConstTensorView device_scale;  // [1,1] fp64, multiplies grad_scale; empty data = 1
  ConstTensorView device_lr;     // [1,1] fp64, multiplies lr; empty data = 1
};

/// v = momentum v + (g + decay w);  w -= lr v   (nesterov: w -= lr (g + decay w + momentum v))
struct SgdArgs {
  TensorView weight, v;
  ConstTensorView grad;
  double lr = 0, momentum = 0, decay = 0, grad_scale = 1;
  bool nesterov = false;
  ConstTensorView device_scale;  // [1,1] fp64, multiplies grad_scale; empty data = 1
  ConstTensorView device_lr;     // [1,1] fp64, multiplies lr; empty data = 1
};

class Ops {
 public:
  virtual ~Ops() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual bool supports(DType activation) const = 0;
  /// What a user should know of how verbs are done (engines that were dropped, and why).
  [[nodiscard]] virtual std::vector<std::string> notes() const { return {}; }
  /// Choices made by timing, one line each; empty where nothing is timed.
  [[nodiscard]] virtual std::string choices() const { return {}; }
  /// Keeps them for later runs, which then do the same arithmetic. One rank per file. Throws
  /// Error(io).
  virtual void save_choices(const std::string& path) const { (void)path; }
  /// Forgets what it keeps for shapes that may not come again; choices stay.
  virtual void trim() {}

  virtual void gemm(Queue&, const GemmArgs&) = 0;

  /// out [rows, heads*D], lse [rows, heads] (log of the sum of exponentials, accumulator dtype).
  virtual void attention_forward(Queue&, const AttentionArgs&, TensorView out, TensorView lse) = 0;
  /// dqkv like qkv, overwritten. Recomputes the probabilities from lse.
  virtual void attention_backward(Queue&, const AttentionArgs&, ConstTensorView out,
                                  ConstTensorView lse, ConstTensorView dout, TensorView dqkv) = 0;
  /// out [rows, heads*D].
  virtual void kept_attention(Queue&, const KeptAttentionArgs&, TensorView out) = 0;
  virtual void rope(Queue&, const RopeArgs&) = 0;

  /// stats [rows,3] = (count, mean, M2 = sum (x-mean)^2); for rms (count, 0, sum x^2).
  virtual void norm_stats(Queue&, NormKind, ConstTensorView x, TensorView stats) = 0;
  /// Merges `parts` blocks of stats (stacked: block b is rows [b*rows, (b+1)*rows)) by Chan's rule
  /// into moments [rows,2] = (mean, 1/sqrt(M2/count + eps)).
  virtual void norm_merge(Queue&, NormKind, ConstTensorView stats, index_t parts, double eps,
                          TensorView moments) = 0;
  /// y = (x - mean) * rstd * gamma (+ beta where given).
  virtual void norm_apply(Queue&, ConstTensorView x, ConstTensorView moments, ConstTensorView gamma,
                          ConstTensorView beta, TensorView y) = 0;
  /// add, norm_stats, norm_merge and norm_apply in one; a back end may pass over memory once.
  virtual void norm_forward(Queue& queue, const NormArgs& args);

  /// sums [rows,2] = (sum dy gamma, sum dy gamma xhat) over the local columns.
  virtual void norm_backward_stats(Queue&, ConstTensorView dy, ConstTensorView x,
                                   ConstTensorView moments, ConstTensorView gamma,
                                   TensorView sums) = 0;
  /// dx (+)= rstd (dy gamma - [layer] sums0/length - xhat sums1/length), with sums over all columns
  /// (`length` of them). dgamma += sum_rows dy xhat; dbeta += sum_rows dy where given.
  virtual void norm_backward_apply(Queue&, NormKind, ConstTensorView dy, ConstTensorView x,
                                   ConstTensorView moments, ConstTensorView gamma,
                                   ConstTensorView sums, index_t length, bool accumulate,
                                   TensorView dx, TensorView dgamma, TensorView dbeta) = 0;

  /// gelu_tanh: x [rows,F] -> y [rows,F]. swiglu: x [rows,2F] = gate | up -> y = silu(gate) up.
  virtual void activation_forward(Queue&, Activation, ConstTensorView x, TensorView y) = 0;
  virtual void activation_backward(Queue&, Activation, ConstTensorView x, ConstTensorView dy,
                                   TensorView dx) = 0;

  /// out[t] = table[ids[t] - row0] where that row is in the table, else 0. ids [1,rows] int32.
  virtual void embed_gather(Queue&, ConstTensorView ids, index_t row0, ConstTensorView table,
                            TensorView out) = 0;
  /// to[places[t]] = from[t], rounded to its dtype, where places[t] >= 0. places [1,rows] int32, no
  /// two rows of one place.
  virtual void put_rows(Queue&, ConstTensorView places, ConstTensorView from, TensorView to) = 0;
  /// x[t] += table[t % length] for rows first_row + t (learned positions).
  virtual void add_positions(Queue&, ConstTensorView table, index_t first_row, index_t length,
                             TensorView x) = 0;
  /// dtable[ids[t] - row0] += dx[t] in the order of t (deterministic). dtable accumulator dtype.
  virtual void embed_scatter_add(Queue&, ConstTensorView ids, index_t row0, ConstTensorView dx,
                                 TensorView dtable) = 0;

  /// Vocabulary-parallel cross-entropy over a slice [col0, col0+V): stats [rows,3] = (max, sum of
  /// exp(logit - max), target's logit or 0 where the target is not in the slice). V = 0 gives
  /// (-inf, 0, 0). targets [1,rows] int32, negative = ignored row.
  virtual void xent_stats(Queue&, ConstTensorView logits, ConstTensorView targets, index_t col0,
                          TensorView stats) = 0;
  /// Merges `parts` stacked blocks of stats into lse [1,rows] and loss [1,rows] = lse - target
  /// logit (0 for an ignored row).
  virtual void xent_merge(Queue&, ConstTensorView stats, index_t parts, ConstTensorView targets,
                          TensorView lse, TensorView loss) = 0;
  /// In place: logits become (softmax - onehot(target)) * scale; 0 for an ignored row.
  virtual void xent_grad(Queue&, TensorView logits, ConstTensorView targets, index_t col0,
                         ConstTensorView lse, double scale) = 0;

  virtual void fill(Queue&, TensorView x, double value) = 0;
  virtual void copy(Queue&, ConstTensorView from, TensorView to) = 0;  // any dtypes, same shape
  virtual void add(Queue&, ConstTensorView a, TensorView b) = 0;       // b += a, any float dtypes
  virtual void scale(Queue&, TensorView x, double factor) = 0;
  /// out [1,cols] += sum over rows of x (bias gradient), accumulator dtype.
  virtual void column_sums(Queue&, ConstTensorView x, TensorView out) = 0;
  virtual void dropout(Queue&, const DropoutArgs&) = 0;

  /// result [1,1] fp64 on the device += sum of squares of contiguous x.
  virtual void sum_squares(Queue&, ConstTensorView x, TensorView result) = 0;
  /// result [1,1] fp64 += sum of contiguous x.
  virtual void sum(Queue&, ConstTensorView x, TensorView result) = 0;
  virtual void adamw(Queue&, const AdamWArgs&) = 0;
  virtual void sgd(Queue&, const SgdArgs&) = 0;
  /// factor [1,1] fp64 = min(1, clip_norm / (sqrt(squares) + 1e-6)), squares [1,1] fp64: the rule
  /// of torch.nn.utils.clip_grad_norm_, on the device so that the host need not wait. clip_norm <=
  /// 0: 1.
  virtual void clip_factor(Queue&, ConstTensorView squares, double clip_norm,
                           TensorView factor) = 0;
  /// AdamW's m and v as in adamw; direction [like weight] = m / (1-b1^step) / (sqrt(v /
  /// (1-b2^step))
  /// + eps) + decay weight. The weight stays as it is. `direction` may be grad's own memory.
  virtual void adam_direction(Queue&, const AdamWArgs&, TensorView direction) = 0;
  /// y = a x + b y, elementwise; fp32 (fp64). x may be y.
  virtual void axpby(Queue&, const Factor& a, ConstTensorView x, const Factor& b, TensorView y) = 0;
  /// ratios [1,n] = gains sqrt(numerators / denominators), or gains alone where either is 0; gains
  /// 1 where their data is empty. All [1,n] fp64.
  virtual void norm_ratios(Queue&, ConstTensorView numerators, ConstTensorView denominators,
                           ConstTensorView gains, TensorView ratios) = 0;

  /// gram [groups, n(n+1)/2] fp64 += the packed upper triangle of <x_i, x_j> over each segment's
  /// columns, into the row of its group. x [n, count], n <= 64: fp64, fp32, bf16 or fp16. Sums in
  /// fp64 in an order that depends on the segment alone.
  virtual void gram(Queue&, ConstTensorView x, std::span<const Segment> segments,
                    TensorView gram) = 0;
  virtual void adasum(Queue&, const AdasumArgs&) = 0;
  virtual void flat_gains(Queue&, const FlatGainArgs&) = 0;
  /// out [1,count] = sum_i coefficients[group, i] x_i over each segment's columns, in the order of
  /// i in fp64, rounded once; rows with coefficient 0 are not read as numbers (they may hold
  /// NaN). Columns outside the segments stay. x [n, count] as in gram; out: any float dtype.
  virtual void combine(Queue&, ConstTensorView x, std::span<const Segment> segments,
                       ConstTensorView coefficients, TensorView out) = 0;
  /// x[r,c] = std * random_normal(key, (row0+r)*global_cols + col0 + c).
  virtual void random_init(Queue&, TensorView x, const RandomKey& key, index_t row0, index_t col0,
                           index_t global_cols, double std) = 0;
};

/// Plain loops, fp64 sums: the definition of every verb. fp64, fp32, bf16.
[[nodiscard]] std::unique_ptr<Ops> make_reference_ops();
/// oneDNN matmuls and vectorised kernels. fp32, bf16. `threads` <= 0: all cores of the affinity
/// mask.
[[nodiscard]] std::unique_ptr<Ops> make_cpu_ops(int threads = 0);
/// Does nothing: for dry runs, beside make_dry_device().
[[nodiscard]] std::unique_ptr<Ops> make_dry_ops();

}  // namespace t3d
