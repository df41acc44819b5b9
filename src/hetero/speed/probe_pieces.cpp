#include "hetero/speed/probe_pieces.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "hetero/speed/probe_numbers.hpp"

namespace t3d {
namespace {

/// The step without micro-batches: what is left is the update.
StepWork work_of_update(Plan plan, const Coord& coord) {
  for (auto& leaf : plan.replicas[static_cast<std::size_t>(coord.d)].leaves) leaf.clear();
  return step_work(plan, coord);
}

}  // namespace

ProbeShape::ProbeShape(const ProbeMachine& machine, const Plan& plan, const Coord& coord)
    : machine_(machine),
      rank_(plan, coord),
      shape_(plan.model, rank_.cut),
      mesh_(plan.mesh().seen_from(coord.d)),
      forwards_(plan.recompute == Recompute::block ? 2 : 1),
      work_(step_work(plan, coord)),
      update_work_(work_of_update(plan, coord)) {
  slab_ = largest([](const Rows& rows) { return rows.slab; });
  attending_ = largest([this](const Rows& rows) { return attention_elements(rows); });
}

ProbeShape::Largest ProbeShape::largest(const std::function<index_t(const Rows&)>& size) const {
  Largest result;
  index_t all = 0;
  for (const auto& leaf : rank_.cut.leaves)
    for (const index_t sequences : leaf) {
      const index_t here = size(Rows(rank_, sequences));
      all += here;
      if (here > result.most) result = {sequences, here, 0};
    }
  if (all > 0) result.micros = static_cast<double>(all) / static_cast<double>(result.most);
  return result;
}

// Of q, k and v. Axis k may cut whole sequences, unlike the rows.
index_t ProbeShape::attention_elements(const Rows& rows) const {
  return head_side(rank_, rows, rank_.group_columns).own();
}

double ProbeShape::passes(WorkClass kind) const {
  return kind == WorkClass::whole ? 1 : static_cast<double>(rank_.model.layers) * slab_.micros;
}

Rows ProbeShape::scaled_rows(double scale) const {
  Rows rows(rank_, slab_.sequences);
  rows.slab = std::max<index_t>(1, std::llround(scale * static_cast<double>(slab_.most)));
  return rows;
}

double ProbeShape::scaled_work(WorkClass kind, double scale) const {
  const double update = work_of(update_work_, kind);
  return update + scale * (work_of(work_, kind) - update);
}

Tensor ProbeShape::numbers(DType type, index_t rows, index_t cols) const {
  return probe_numbers(machine_, type, rows, cols);
}

Tensor ProbeShape::scalar() const {
  Tensor tensor(machine_.device, DType::f64, 1, 1, MemoryKind::workspace);
  machine_.ops.fill(machine_.queue, tensor, 0);
  return tensor;
}

Tensor ProbeShape::token_ids(index_t count) const {
  return probe_ids(machine_, count, rank_.model.vocab);
}

PieceSet ProbeShape::pieces(WorkClass kind, double scale) const {
  switch (kind) {
    case WorkClass::matmul: return matmul(scale);
    case WorkClass::attention: return attention(scale);
    case WorkClass::whole: return whole(scale);
    case WorkClass::streamed: return streamed(scale);
    case WorkClass::count_: break;
  }
  T3D_CHECK(false, "class {}", static_cast<int>(kind));
}

}  // namespace t3d
