#include "forecast/cluster/operator_terms.hpp"

#include <algorithm>
#include <cmath>

#include "comm/cost.hpp"
#include "tensor3d/matrix_owners.hpp"

namespace t3d {
namespace {

constexpr std::array kMatmulColumns{"m", "n", "k", "transpose_a", "transpose_b"};
constexpr std::array kMatmulTerms{"call",
                                  "flop",
                                  "element of C",
                                  "element of A",
                                  "element of B",
                                  "element of C that is added to",
                                  "element of A that is transposed",
                                  "element of B that is transposed"};
constexpr std::array kAttentionColumns{"sequences", "length", "heads", "kv_heads", "head_size"};
constexpr std::array kAttentionTerms{"call", "flop", "element of queries", "pair of places",
                                     "row of a head"};
constexpr std::array kWholeColumns{"rows", "columns"};
constexpr std::array kWholeTerms{"call", "flop", "element"};
constexpr std::array kStreamColumns{"bytes"};
constexpr std::array kStreamTerms{"call", "byte"};
constexpr std::array kCollectiveColumns{"peers", "bytes", "groups"};
constexpr std::array kCollectiveTerms{"message", "byte", "byte and further group", "call"};

/// Causal: half of the products counts.
TermCounts attention_counts(std::span<const double> shape, double products) {
  const double rows = shape[0] * shape[1] * shape[2], length = shape[1], size = shape[4];
  const double pairs = rows * length / 2;
  return {1, products * 2 * pairs * size, rows * size, pairs, rows};
}

double log_of(double extent) { return std::log(std::max(extent, 1.0)); }

}  // namespace

TableForm form_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::matmul: return {kMatmulColumns, kMatmulTerms, true};
    case OperatorKind::attention_forward:
    case OperatorKind::attention_backward: return {kAttentionColumns, kAttentionTerms, true};
    case OperatorKind::whole: return {kWholeColumns, kWholeTerms, true};
    default: return {kStreamColumns, kStreamTerms, false};
  }
}

TableForm collective_form() { return {kCollectiveColumns, kCollectiveTerms, false}; }

TermCounts term_counts(OperatorKind kind, std::span<const double> shape) {
  switch (kind) {
    case OperatorKind::matmul: {
      const double m = shape[0], n = shape[1], k = shape[2];
      const double ta = shape[3], tb = shape[4];
      return {1, 2 * m * n * k, m * n, m * k, n * k, ta * m * n, ta * m * k, tb * n * k};
    }
    case OperatorKind::attention_forward: return attention_counts(shape, 2);
    case OperatorKind::attention_backward: return attention_counts(shape, 5);
    case OperatorKind::whole: {
      const auto rows = static_cast<index_t>(shape[0]), cols = static_cast<index_t>(shape[1]);
      return {1, newton_schulz_flops(rows, cols, kNewtonSchulzSteps), shape[0] * shape[1]};
    }
    default: return {1, shape[0]};
  }
}

double messages_of(Verb verb, double peers, double bytes) {
  const double members = peers + 1;
  const bool flat = members <= kFlatRanks;
  const double rounds = flat ? peers : std::ceil(std::log2(members));
  switch (verb) {
    case Verb::all_gather: return bytes > peers * kSmallPart ? peers : rounds;
    case Verb::reduce_scatter: return peers;
    case Verb::all_reduce: {  // from so many bytes on a reduce-scatter and an all-gather (fp32)
      const double least = 2.0 * kSmallAllReduce * size_of(DType::f32) * peers / members;
      return bytes >= least ? 2 * peers : rounds;
    }
    default: return rounds;
  }
}

TermCounts term_counts(Verb verb, std::span<const double> shape) {
  const double peers = shape[0], bytes = shape[1], groups = shape[2];
  return {messages_of(verb, peers, bytes), bytes, bytes * (groups - 1), 1};
}

Place place_of(OperatorKind kind, std::span<const double> shape) {
  // Products of other transposes are as far as a factor of e: related, not the same.
  constexpr double kTransposed = 1;
  Place place{};
  for (std::size_t at = 0; at < shape.size(); ++at) place[at] = log_of(shape[at]);
  if (kind == OperatorKind::matmul)
    for (const std::size_t flag : {std::size_t{3}, std::size_t{4}})
      place[flag] = shape[flag] != 0 ? kTransposed : 0;
  return place;
}

Place place_of_collective(std::span<const double> shape) {
  Place place{};
  for (std::size_t at = 0; at < shape.size(); ++at) place[at] = log_of(shape[at]);
  return place;
}

}  // namespace t3d
