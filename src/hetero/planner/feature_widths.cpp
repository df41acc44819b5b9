#include "hetero/planner/feature_widths.hpp"

#include <algorithm>

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
  shape.ffn = cut_like("ffn", model.ffn, q, widths.units[1]);
  shape.vocab = cut_like("vocab", model.vocab, q, widths.units[1]);
}

}  // namespace t3d
