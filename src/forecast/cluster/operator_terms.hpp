// What the numbers of an operator's samples mean, and of which physical terms its seconds are the
// sum: one table for files, fits and estimates. Sums of terms express efficiencies that grow with
// the extents: 2mnk/F (1 + k0/k) is a term of mnk and one of mn.
#pragma once
#include <span>

#include "forecast/cluster/cluster.hpp"

namespace t3d {

inline constexpr std::size_t kMostTerms = 8;

struct TableForm {
  std::span<const char* const> columns;  // of a sample, before seconds and error
  std::span<const char* const> terms;    // of operators the first is the call itself
  bool computes = false;                 // the second is computing: FitForm::max makes sense
};
[[nodiscard]] TableForm form_of(OperatorKind kind);
[[nodiscard]] TableForm collective_form();

/// How often each term counts in one call.
using TermCounts = std::array<double, kMostTerms>;
/// matmul: C[m, n] = op(A)[m, k] op(B)[k, n]: 2mnk flops, elements of C, A and B, and the same once
/// more where transposes are another matter; products with a transposed A, which are gradients of
/// weights, add to C.
/// attention: causal; two products forward, five backward, of which half counts; elements of the
/// queries; pairs of places of all heads; rows of all heads. whole: flops of Newton-Schulz,
/// elements. Others: bytes that are read and written, as hetero/cost/flops.hpp counts them.
[[nodiscard]] TermCounts term_counts(OperatorKind kind, std::span<const double> shape);
[[nodiscard]] TermCounts term_counts(Verb verb, std::span<const double> shape);

/// Messages that one rank sends in a call to `peers` others (comm/cost.hpp), one after another.
[[nodiscard]] double messages_of(Verb verb, double peers, double bytes);

/// Where a shape lies for comparison with others: logarithms, and flags far enough apart.
using Place = std::array<double, Sample::kMostColumns>;
[[nodiscard]] Place place_of(OperatorKind kind, std::span<const double> shape);
[[nodiscard]] Place place_of_collective(std::span<const double> shape);

}  // namespace t3d
