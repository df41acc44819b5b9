// Gram matrices and linear combinations of a few long vectors: memory-bound, so each is one pass
// over fixed pieces of columns that fit a core's cache. Dots of a piece are summed over the pieces
// in their order, whatever the number of threads.
#include <cmath>

#include "ops/adasum_tree.hpp"
#include "ops/cpu/cpu_ops.hpp"

namespace t3d {
namespace {

struct GramScratch;

constexpr index_t kPiece = 4096;  // columns; part of the result, not a tuning knob

std::vector<Segment> cut(std::span<const Segment> segments) {
  std::vector<Segment> pieces;
  for (const Segment& s : segments)
    for (index_t begin = s.begin; begin < s.end; begin += kPiece)
      pieces.push_back({begin, std::min(s.end, begin + kPiece), s.group});
  return pieces;
}

/// The vectors of one group that have a part in its combination, and their factors.
template <class T>
struct Terms {
  std::vector<const T*> rows;
  std::vector<double> factors;
};

template <class T>
std::vector<Terms<T>> terms_of_groups(const ConstTensorView& x,
                                      const ConstTensorView& coefficients) {
  std::vector<Terms<T>> groups(static_cast<std::size_t>(coefficients.rows));
  for (index_t g = 0; g < coefficients.rows; ++g)
    for (index_t i = 0; i < x.rows; ++i)
      if (const double factor = cpu::row_of<double>(coefficients, g)[i]; factor != 0) {
        Terms<T>& terms = groups[static_cast<std::size_t>(g)];
        terms.rows.push_back(cpu::row_of<T>(x, i));
        terms.factors.push_back(factor);
      }
  return groups;
}

template <class T, class Out>
constexpr auto combine_kernel() {
  if constexpr (std::is_same_v<Out, float>)
    return cpu::update_kernels_for<T>().combine_to_float;
  else
    return cpu::update_kernels_for<T>().combine_to_bf16;
}

}  // namespace

void CpuOps::gram(Queue& queue, ConstTensorView x, std::span<const Segment> segments,
                  TensorView gram) {
  const std::vector<Segment> pieces = cut(segments);
  const index_t count = static_cast<index_t>(pieces.size()), dots = adasum::packed_size(x.rows);
  std::vector<double> sums(static_cast<std::size_t>(count * dots));
  cpu::visit_activation(x.dtype, [&]<class T>(T) {
    for_rows(queue, count, x.rows * kPiece * size_of(x.dtype), [&](index_t first, index_t last) {
      float* workspace = cpu::scratch<GramScratch>(cpu::kernels().update->gram_workspace(x.rows));
      for (index_t p = first; p < last; ++p) {
        const Segment& piece = pieces[static_cast<std::size_t>(p)];
        cpu::update_kernels_for<T>().gram(x.as<T>() + piece.begin, x.ld, x.rows,
                                          piece.end - piece.begin, sums.data() + p * dots,
                                          workspace);
      }
    });
  });
  const double* from = sums.data();
  for (const Segment& piece : pieces) {
    double* to = cpu::row_of<double>(gram, piece.group);
    for (index_t d = 0; d < dots; ++d) to[d] += *from++;
  }
}

void CpuOps::combine(Queue& queue, ConstTensorView x, std::span<const Segment> segments,
                     ConstTensorView coefficients, TensorView out) {
  const std::vector<Segment> pieces = cut(segments);
  const auto count = static_cast<index_t>(pieces.size());
  const auto run = [&]<class T, class Out>(T, Out) {
    const auto groups = terms_of_groups<T>(x, coefficients);
    const auto combine = combine_kernel<T, Out>();
    for_rows(queue, count, (x.rows + 1) * kPiece * 4, [&](index_t first, index_t last) {
      for (index_t p = first; p < last; ++p) {
        const Segment& piece = pieces[static_cast<std::size_t>(p)];
        const Terms<T>& terms = groups[static_cast<std::size_t>(piece.group)];
        combine(terms.rows.data(), terms.factors.data(), static_cast<index_t>(terms.rows.size()),
                piece.begin, out.as<Out>() + piece.begin, piece.end - piece.begin);
      }
    });
  };
  cpu::visit_activation(x.dtype, [&]<class T>(T from) {
    cpu::visit_activation(out.dtype, [&]<class Out>(Out to) { run(from, to); });
  });
}

}  // namespace t3d
