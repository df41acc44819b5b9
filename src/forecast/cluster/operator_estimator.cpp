#include "forecast/cluster/operator_estimator.hpp"

#include <algorithm>
#include <limits>

#include "forecast/cluster/old_gpus.hpp"

namespace t3d {
namespace {

/// What stands for a format that was not measured. Chips without units for bf16 have some for fp16,
/// which would be a rate several times too high: what they do with bf16 is fp32.
ComputeType stand_in(ComputeType format, bool has_bf16) {
  switch (format) {
    case ComputeType::tf32: return ComputeType::fp32;
    case ComputeType::fp32: return ComputeType::tf32;
    case ComputeType::bf16: return has_bf16 ? ComputeType::fp16 : ComputeType::fp32;
    case ComputeType::fp16: return ComputeType::bf16;
    case ComputeType::fp64: break;
  }
  return format;
}

template <class... Extents>
std::array<double, sizeof...(Extents)> shape_of(Extents... extents) {
  return {static_cast<double>(extents)...};
}

}  // namespace

OperatorEstimator::OperatorEstimator(const NodeClass& node_class)
    : launch_seconds_(node_class.launch_seconds), has_bf16_(!is_old_gpu(node_class.device)) {
  for (const OperatorTable& table : node_class.operators) {
    const OperatorKind kind = table.kind;
    fits_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(table.format)].emplace(
        table.fit, table.samples, form_of(kind),
        [kind](std::span<const double> shape) { return term_counts(kind, shape); },
        [kind](std::span<const double> shape) { return place_of(kind, shape); });
  }
}

const SampledFit* OperatorEstimator::find(OperatorKind kind, ComputeType format) const {
  const auto& formats = fits_[static_cast<std::size_t>(kind)];
  for (const ComputeType one : {format, stand_in(format, has_bf16_)})
    if (const auto& fit = formats[static_cast<std::size_t>(one)]) return &*fit;
  return nullptr;
}

bool OperatorEstimator::knows(OperatorKind kind, ComputeType format) const {
  return find(kind, format) != nullptr;
}

double OperatorEstimator::seconds(OperatorKind kind, ComputeType format,
                                  std::span<const double> shape) const {
  // Flags may be 0.
  const std::size_t extents = kind == OperatorKind::matmul ? 3 : shape.size();
  const auto used = shape.first(extents);
  if (std::any_of(used.begin(), used.end(), [](double extent) { return extent <= 0; })) return 0;
  const SampledFit* const fit = find(kind, format);
  if (fit == nullptr) return std::numeric_limits<double>::infinity();
  return fit->seconds(term_counts(kind, shape), place_of(kind, shape));
}

double OperatorEstimator::matmul_seconds(ComputeType format, const MatmulShape& shape) const {
  return seconds(OperatorKind::matmul, format,
                 shape_of(shape.m, shape.n, shape.k, shape.transpose_a, shape.transpose_b));
}

double OperatorEstimator::attention_seconds(ComputeType format, const AttentionShape& shape,
                                            bool backward) const {
  const OperatorKind kind =
      backward ? OperatorKind::attention_backward : OperatorKind::attention_forward;
  return seconds(
      kind, format,
      shape_of(shape.sequences, shape.length, shape.heads, shape.kv_heads, shape.head_size));
}

double OperatorEstimator::whole_seconds(ComputeType format, index_t rows, index_t cols) const {
  return seconds(OperatorKind::whole, format, shape_of(rows, cols));
}

double OperatorEstimator::streamed_seconds(OperatorKind kind, ComputeType format,
                                           double bytes) const {
  return seconds(kind, format, shape_of(bytes));
}

std::size_t CachedEstimator::Hash::operator()(const Key& key) const {
  std::uint64_t hash = static_cast<std::uint64_t>(key.format) * 4 +
                       (key.shape.transpose_a ? 2U : 0U) + (key.shape.transpose_b ? 1U : 0U);
  for (const index_t extent : {key.shape.m, key.shape.n, key.shape.k}) {
    hash ^= static_cast<std::uint64_t>(extent);
    hash *= 0x9e3779b97f4a7c15U;
    hash ^= hash >> 29;
  }
  return hash;
}

double CachedEstimator::matmul_seconds(ComputeType format, const MatmulShape& shape) {
  const auto [entry, fresh] = known_.try_emplace({shape, format}, 0.0);
  if (fresh) entry->second = estimator_->matmul_seconds(format, shape);
  return entry->second;
}

}  // namespace t3d
