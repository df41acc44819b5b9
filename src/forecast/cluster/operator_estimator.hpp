// How long an operator takes on one rank of a class: a fit of physical terms, corrected by the
// measured samples near the shape that is asked for. Exact at a sample. Pure functions; a call is
// tens of nanoseconds for fits and a few hundred with samples, and CachedEstimator remembers.
#pragma once
#include <memory>
#include <optional>
#include <unordered_map>

#include "forecast/cluster/operator_terms.hpp"
#include "forecast/cluster/sampled_fit.hpp"

namespace t3d {

/// C[m, n] = op(A)[m, k] op(B)[k, n], as GemmArgs. Products of linears: forward is (rows, out, in)
/// with transpose_b, the input's gradient (rows, in, out) with none, the weight's (out, in, rows)
/// with transpose_a.
struct MatmulShape {
  index_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  friend bool operator==(const MatmulShape&, const MatmulShape&) = default;
};

/// As AttentionArgs, causal.
struct AttentionShape {
  index_t sequences = 0, length = 0, heads = 0, kv_heads = 0, head_size = 0;
};

class OperatorEstimator {
 public:
  /// Copies what it needs. A table without terms gets those of its samples.
  explicit OperatorEstimator(const NodeClass& node_class);

  /// Whether anything is known of it. Where a format is not known, one of the same width stands
  /// for it: tf32 and fp32, bf16 and fp16; for bf16 of a GPU without units for it fp32.
  [[nodiscard]] bool knows(OperatorKind kind, ComputeType format) const;
  /// 0 where an extent is 0, infinity where nothing is known.
  [[nodiscard]] double matmul_seconds(ComputeType format, const MatmulShape& shape) const;
  [[nodiscard]] double attention_seconds(ComputeType format, const AttentionShape& shape,
                                         bool backward) const;
  /// Newton-Schulz of one matrix, kNewtonSchulzSteps steps. `format`: the accumulator's.
  [[nodiscard]] double whole_seconds(ComputeType format, index_t rows, index_t cols) const;
  /// norm, activation, residual, loss, embedding, optimizer: bytes read and written.
  [[nodiscard]] double streamed_seconds(OperatorKind kind, ComputeType format, double bytes) const;
  /// Of any kind, by the columns of form_of(kind).
  [[nodiscard]] double seconds(OperatorKind kind, ComputeType format,
                               std::span<const double> shape) const;
  /// Of the host, to start one operator.
  [[nodiscard]] double launch_seconds() const { return launch_seconds_; }

 private:
  static constexpr std::size_t kFormats = Words<ComputeType>::all.size();
  [[nodiscard]] const SampledFit* find(OperatorKind kind, ComputeType format) const;

  std::array<std::array<std::optional<SampledFit>, kFormats>, kOperatorKinds> fits_;
  double launch_seconds_ = 0;
  bool has_bf16_ = true;
};

/// Remembers the products that were asked for: a search asks for few different ones very often. Not
/// for several threads at once.
class CachedEstimator {
 public:
  explicit CachedEstimator(std::shared_ptr<const OperatorEstimator> estimator)
      : estimator_(std::move(estimator)) {}
  [[nodiscard]] double matmul_seconds(ComputeType format, const MatmulShape& shape);
  [[nodiscard]] const OperatorEstimator& estimator() const { return *estimator_; }

 private:
  struct Key {
    MatmulShape shape;
    ComputeType format;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  std::shared_ptr<const OperatorEstimator> estimator_;
  std::unordered_map<Key, double, Hash> known_;
};

}  // namespace t3d
