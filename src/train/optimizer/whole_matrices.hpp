// Matrices that must be seen whole (Muon). A matrix lies in shards on all ranks of a cuboid; one of
// them, its owner (hetero/cost/matrix_owners.hpp), puts it together, transforms it, and sends the
// result back:
//
//   round x    every rank sends its part of the matrix that each owner begins: one message per
//   owner
//              each owner transforms its matrix, and sends every rank its part of one that ends
//
// The messages of round x+1 travel while round x computes. A matrix may take an owner several
// rounds: then all messages of these are on their way before it computes. An owner holds at most
// two matrices. Who holds which part is computed from the plan. Replicas have equal gradients and
// do the same work, each within its cuboid.
#pragma once
#include <deque>
#include <functional>
#include <vector>

#include "tensor3d/matrix_owners.hpp"
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
  /// Matrices that begin in one round, on their way to their owners.
  struct Gather {
    index_t round = 0;
    Tensor matrix;  // this rank's, where it begins one
    std::unique_ptr<PackedExchange> exchange;
  };
  /// Which matrix of a rank belongs to a round: MatrixOwners::beginning or ending.
  using Which = index_t (MatrixOwners::*)(int rank, index_t round) const;

  [[nodiscard]] const Matrix& matrix(index_t number) const {
    return matrices_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] int here() const { return context_.mesh.cuboid().rank(); }
  [[nodiscard]] std::unique_ptr<PackedExchange> make_exchange() const;
  [[nodiscard]] Gather start(index_t round, const std::vector<TensorView>& from) const;
  /// Waits for the oldest gather, which goes; its matrix stays.
  Tensor finish_gather(std::deque<Gather>& gathers) const;
  [[nodiscard]] std::unique_ptr<PackedExchange> send_back(index_t round, const Tensor& own,
                                                          const std::vector<TensorView>& to) const;
  /// Calls visit(rank, part of `whole`) for what the ranks of the cuboid hold of matrix `number`.
  template <class Visit>
  void for_each_part(index_t number, const Tensor& whole, Visit&& visit) const;
  /// Calls visit(owner, part of the shard) for what this rank holds of the round's matrices.
  template <class Visit>
  void for_each_own_part(index_t round, Which which, const std::vector<TensorView>& shards,
                         Visit&& visit) const;

  const Context& context_;
  std::vector<Matrix> matrices_;
  MatrixOwners owners_;
};

}  // namespace t3d
