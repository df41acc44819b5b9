#include "train/optimizer/whole_matrices.hpp"

#include <utility>

#include "core/route.hpp"
#include "hetero/cost/update_traffic.hpp"

namespace t3d {

WholeMatrices::WholeMatrices(const Context& context, const Plan& plan,
                             const std::vector<ParamBucket*>& buckets,
                             std::vector<EntryPlace> matrices)
    : context_(context) {
  for (const EntryPlace& place : matrices) {
    const ParamEntry& entry = buckets[place.bucket]->entries()[place.entry];
    matrices_.push_back({place.bucket, entry.rows, entry.cols, {}});
  }
  const MeshShape& mesh = context.mesh.shape();
  const ModelShape shape(plan.model, plan.replica(context.coord(Axis::d)));
  for (const int rank : mesh.group(context.mesh.world().rank(), {Axis::i, Axis::j, Axis::k})) {
    const std::vector<BucketTable> tables = parameter_buckets(shape, mesh, mesh.coord_of(rank));
    for (std::size_t at = 0; at < matrices.size(); ++at) {
      const BucketTable& table = tables[matrices[at].bucket];
      matrices_[at].boxes.push_back(table.shard_boxes(table.entries[matrices[at].entry]));
    }
  }
  owners_ = muon_owners(hidden_matrices(plan.model), context.mesh.cuboid().size());
}

template <class Visit>
void WholeMatrices::for_each_part(const Round& round, Visit&& visit) const {
  if (!round.matrix.allocated()) return;
  const Matrix& own = matrix(owners_.matrix(context_.mesh.cuboid().rank(), round.number));
  for (std::size_t rank = 0; rank < own.boxes.size(); ++rank)
    for (const auto& [box, offset] : own.boxes[rank])
      visit(static_cast<int>(rank),
            round.matrix.view().row_range(box.row0, box.rows).col_range(box.col0, box.cols));
}

template <class Visit>
void WholeMatrices::for_each_own_part(const Round& round, const std::vector<TensorView>& shards,
                                      Visit&& visit) const {
  const Communicator& cuboid = context_.mesh.cuboid();
  for (int owner = 0; owner < cuboid.size(); ++owner) {
    const index_t number = owners_.matrix(owner, round.number);
    if (number == MatrixOwners::kNone) continue;
    for (const auto& [box, offset] : matrix(number).boxes[static_cast<std::size_t>(cuboid.rank())])
      visit(owner, rectangle(shards[matrix(number).bucket], offset, box.rows, box.cols, box.cols));
  }
}

WholeMatrices::Round WholeMatrices::start(index_t number,
                                          const std::vector<TensorView>& from) const {
  Communicator& cuboid = context_.mesh.cuboid();
  Round round{number, {}, nullptr};
  if (const index_t own = owners_.matrix(cuboid.rank(), number); own != MatrixOwners::kNone)
    round.matrix = context_.make(context_.accumulator(), matrix(own).rows, matrix(own).cols,
                                 MemoryKind::workspace);
  round.exchange = std::make_unique<PackedExchange>(context_, cuboid, context_.accumulator(),
                                                    MemoryKind::workspace);
  for_each_own_part(round, from,
                    [&](int owner, TensorView part) { round.exchange->send(owner, part); });
  for_each_part(round, [&](int rank, TensorView part) { round.exchange->receive(rank, part); });
  round.exchange->start();
  return round;
}

void WholeMatrices::send_back(const Round& round, const std::vector<TensorView>& to) const {
  PackedExchange exchange(context_, context_.mesh.cuboid(), context_.accumulator(),
                          MemoryKind::workspace);
  for_each_part(round, [&](int rank, TensorView part) { exchange.send(rank, part); });
  for_each_own_part(round, to, [&](int owner, TensorView part) { exchange.receive(owner, part); });
  exchange.start();
  exchange.finish();
}

void WholeMatrices::transform_all(const std::vector<TensorView>& from,
                                  const std::vector<TensorView>& to,
                                  const std::function<void(TensorView)>& transform) {
  const index_t rounds = owners_.rounds();
  Round next;
  if (rounds > 0) next = start(0, from);
  for (index_t number = 0; number < rounds; ++number) {
    const bool last = number + 1 == rounds;
    Round round = std::exchange(next, last ? Round{} : start(number + 1, from));
    {
      const PhaseClock::Scope scope(context_.clock, "gather matrices");
      round.exchange->finish();
    }
    if (round.matrix.allocated()) transform(round.matrix);
    const PhaseClock::Scope scope(context_.clock, "scatter matrices");
    send_back(round, to);
  }
}

}  // namespace t3d
