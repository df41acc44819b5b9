#include "hetero/planner/feature_widths.hpp"

#include <algorithm>
#include <array>

#include "hetero/solve/apportion.hpp"
#include "hetero/solve/widths.hpp"

namespace t3d {
namespace {

index_t units_of(index_t length, index_t parts) {
  const index_t unit = feature_unit(length, parts);
  return (length + unit - 1) / unit;
}

Partition cut_like(const char* name, index_t length, index_t parts,
                   const std::vector<index_t>& widths) {
  const index_t unit = feature_unit(length, parts);
  const std::vector<double> wanted(widths.begin(), widths.end());
  std::vector<index_t> offsets{0};
  for (const index_t units : min_max_apportion(units_of(length, parts), wanted))
    offsets.push_back(std::min(offsets.back() + units * unit, length));
  return Partition::from_offsets(name, std::move(offsets), unit);
}

/// Of a block's products, flops per token: of one group with its part of attention, and of one unit
/// of ffn.
std::array<double, 2> unit_work(const ModelConfig& m, index_t ffn_unit) {
  const auto hidden = static_cast<double>(m.hidden), size = static_cast<double>(m.head_size());
  const auto heads = static_cast<double>(m.heads) / static_cast<double>(m.kv_heads);
  constexpr double kLinear = 6, kAttention = 3.5;  // forward and backward; of half a square
  const double group = kLinear * hidden * size * (2 * heads + 2) +
                       2 * kAttention * static_cast<double>(m.context) * size * heads;
  const double matrices = m.activation == Activation::swiglu ? 3 : 2;
  return {group, kLinear * matrices * hidden * static_cast<double>(ffn_unit)};
}

/// Sizes of ffn with which parts of `widths` end together, whose groups are given.
Partition ffn_beside(const ModelConfig& m, const Partition& groups,
                     const std::vector<index_t>& widths) {
  const index_t unit = feature_unit(m.ffn, groups.parts());
  const auto [group, step] = unit_work(m, unit);
  const auto seconds = [&, group = group, step = step](std::size_t part, index_t units) {
    const auto at = static_cast<index_t>(part);
    return (static_cast<double>(groups.size(at)) * group + static_cast<double>(units) * step) /
           static_cast<double>(widths[part]);
  };
  std::vector<index_t> offsets{0};
  for (const index_t units :
       min_max_apportion(widths.size(), units_of(m.ffn, groups.parts()), seconds))
    offsets.push_back(std::min(offsets.back() + units * unit, m.ffn));
  return Partition::from_offsets("ffn", std::move(offsets), unit);
}

}  // namespace

void set_feature_widths(const ModelConfig& model, std::span<const double> speeds,
                        WidthLattice lattice, ReplicaShape& shape) {
  const auto& [p, q, r] = shape.cuboid;
  WidthProblem problem;
  problem.cuboid = shape.cuboid;
  problem.speeds.assign(speeds.begin(), speeds.end());
  problem.units = {std::max<index_t>(shape.sequences, 1),
                   lattice == WidthLattice::groups ? model.kv_heads : units_of(model.ffn, q),
                   units_of(model.hidden, r)};
  const WidthSolution widths = solve_widths(problem);
  shape.hidden = cut_like("hidden", model.hidden, r, widths.units[2]);
  shape.groups = Partition::from_sizes(
      "groups", min_max_apportion(model.kv_heads, std::vector<double>(widths.units[1].begin(),
                                                                      widths.units[1].end())));
  shape.ffn = lattice == WidthLattice::both ? ffn_beside(model, *shape.groups, widths.units[1])
                                            : cut_like("ffn", model.ffn, q, widths.units[1]);
  shape.vocab = cut_like("vocab", model.vocab, q, widths.units[1]);
}

}  // namespace t3d
