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
  owners_ = muon_owners(hidden_matrices(plan.model), plan.replica(context.coord(Axis::d)));
}

template <class Visit>
void WholeMatrices::for_each_part(index_t number, const Tensor& whole, Visit&& visit) const {
  if (number == MatrixOwners::kNone) return;
  const Matrix& own = matrix(number);
  for (std::size_t rank = 0; rank < own.boxes.size(); ++rank)
    for (const auto& [box, offset] : own.boxes[rank])
      visit(static_cast<int>(rank),
            whole.view().row_range(box.row0, box.rows).col_range(box.col0, box.cols));
}

template <class Visit>
void WholeMatrices::for_each_own_part(index_t round, Which which,
                                      const std::vector<TensorView>& shards, Visit&& visit) const {
  for (int owner = 0; owner < context_.mesh.cuboid().size(); ++owner) {
    const index_t number = (owners_.*which)(owner, round);
    if (number == MatrixOwners::kNone) continue;
    for (const auto& [box, offset] : matrix(number).boxes[static_cast<std::size_t>(here())])
      visit(owner, rectangle(shards[matrix(number).bucket], offset, box.rows, box.cols, box.cols));
  }
}

std::unique_ptr<PackedExchange> WholeMatrices::make_exchange() const {
  return std::make_unique<PackedExchange>(context_, context_.mesh.cuboid(), context_.accumulator(),
                                          MemoryKind::workspace);
}

WholeMatrices::Gather WholeMatrices::start(index_t round,
                                           const std::vector<TensorView>& from) const {
  Gather gather{round, {}, make_exchange()};
  const index_t own = owners_.beginning(here(), round);
  if (own != MatrixOwners::kNone)
    gather.matrix = context_.make(context_.accumulator(), matrix(own).rows, matrix(own).cols,
                                  MemoryKind::workspace);
  for_each_own_part(round, &MatrixOwners::beginning, from,
                    [&](int owner, TensorView part) { gather.exchange->send(owner, part); });
  for_each_part(own, gather.matrix,
                [&](int rank, TensorView part) { gather.exchange->receive(rank, part); });
  gather.exchange->start();
  return gather;
}

Tensor WholeMatrices::finish_gather(std::deque<Gather>& gathers) const {
  const PhaseClock::Scope scope(context_.clock, "gather matrices");
  gathers.front().exchange->finish();
  Tensor matrix = std::move(gathers.front().matrix);
  gathers.pop_front();
  return matrix;
}

std::unique_ptr<PackedExchange> WholeMatrices::send_back(index_t round, const Tensor& own,
                                                         const std::vector<TensorView>& to) const {
  auto exchange = make_exchange();
  for_each_part(owners_.ending(here(), round), own,
                [&](int rank, TensorView part) { exchange->send(rank, part); });
  for_each_own_part(round, &MatrixOwners::ending, to,
                    [&](int owner, TensorView part) { exchange->receive(owner, part); });
  exchange->start();
  return exchange;
}

// Every rank starts the messages of all rounds in the same order. A rank that is busy for longer
// starts those of the rounds until then first, so that nobody waits for it, and finishes them
// after.
void WholeMatrices::transform_all(const std::vector<TensorView>& from,
                                  const std::vector<TensorView>& to,
                                  const std::function<void(TensorView)>& transform) {
  const index_t rounds = owners_.rounds();
  std::deque<Gather> gathers;
  std::vector<std::unique_ptr<PackedExchange>> returns;
  if (rounds > 0) gathers.push_back(start(0, from));
  for (index_t round = 0; round < rounds; ++round) {
    if (round + 1 < rounds) gathers.push_back(start(round + 1, from));
    Tensor own;
    const bool busy = owners_.busy_after(here(), round);
    if (!busy) {
      if (owners_.ending(here(), round) != MatrixOwners::kNone) {
        own = finish_gather(gathers);
        transform(own);
      }
      while (!gathers.empty() && gathers.front().round <= round) (void)finish_gather(gathers);
    }
    const PhaseClock::Scope scope(context_.clock, "scatter matrices");
    returns.push_back(send_back(round, own, to));
    if (busy) continue;
    for (const auto& exchange : returns) exchange->finish();
    returns.clear();
  }
}

}  // namespace t3d
