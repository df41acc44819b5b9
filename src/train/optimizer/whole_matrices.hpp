// Matrices that must be seen whole (Muon). A matrix lies in shards on all ranks of a cuboid; one of
// them, its owner (hetero/cost/matrix_owners.hpp), puts it together, transforms it, and sends the
// result back:
//
//   round x    every rank sends its part of the x-th matrix of each owner: one message per owner
//              each owner transforms its x-th matrix and sends every rank its part
//
// The messages of round x+1 travel while round x computes. An owner holds at most two matrices.
// Who holds which part is computed from the plan. Replicas have equal gradients and do the same
// work, each within its cuboid.
#pragma once
#include <functional>
#include <vector>

#include "hetero/cost/matrix_owners.hpp"
#include "tensor3d/packed_exchange.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

/// An entry of a bucket, by their numbers.
struct EntryPlace {
  std::size_t bucket = 0, entry = 0;
};

class WholeMatrices {
 public:
  /// `matrices`: in the order of hidden_matrices() (hetero/cost/update_traffic.hpp).
  WholeMatrices(const Context& context, const Plan& plan, const std::vector<ParamBucket*>& buckets,
                std::vector<EntryPlace> matrices);

  /// to = transform(from) for every matrix; `from` and `to` are shards by bucket and may be the
  /// same memory. `transform` works in place on a contiguous matrix. Collective over the cuboid.
  void transform_all(const std::vector<TensorView>& from, const std::vector<TensorView>& to,
                     const std::function<void(TensorView)>& transform);

 private:
  struct Matrix {
    std::size_t bucket = 0;
    index_t rows = 0, cols = 0;
    std::vector<std::vector<PlacedBox>> boxes;  // by rank of the cuboid
  };
  /// A round whose matrix is on its way to this rank, or would be.
  struct Round {
    index_t number = 0;
    Tensor matrix;
    std::unique_ptr<PackedExchange> exchange;
  };

  [[nodiscard]] const Matrix& matrix(index_t number) const {
    return matrices_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] Round start(index_t number, const std::vector<TensorView>& from) const;
  void send_back(const Round& round, const std::vector<TensorView>& to) const;
  /// Calls visit(rank, part of `whole`) for what the ranks of the cuboid hold of this rank's
  /// matrix.
  template <class Visit>
  void for_each_part(const Round& round, Visit&& visit) const;
  /// Calls visit(owner, part of the shard) for what this rank holds of the round's matrices.
  template <class Visit>
  void for_each_own_part(const Round& round, const std::vector<TensorView>& shards,
                         Visit&& visit) const;

  const Context& context_;
  std::vector<Matrix> matrices_;
  MatrixOwners owners_;
};

}  // namespace t3d
