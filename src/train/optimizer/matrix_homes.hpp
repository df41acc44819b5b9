// Matrices visit their homes. A matrix lies in shares on all ranks of a cuboid; what needs it whole
// (Muon) is computed on one of them, its home (home_plan.hpp), and goes back in shares:
//
//   round x    every rank sends its share of the x-th matrix of each home: one message per home
//              each home lays the arrived boxes into a matrix, transforms it, sends the boxes back
//
// The shares of round x+1 travel while round x computes. A home holds one matrix and at most two
// rounds of shares, never all of its matrices. A share of an entry is contiguous, so that only
// homes copy boxes; which boxes the others hold, the homes are told once, at the start.
//
// Replicas have equal gradients and do the same work, each within its cuboid.
#pragma once
#include <functional>
#include <vector>

#include "tensor3d/param_bucket.hpp"
#include "train/optimizer/home_plan.hpp"

namespace t3d {

class MatrixHomes {
 public:
  /// An entry of a bucket, by their numbers, and what its transformation costs.
  struct Matrix {
    std::size_t bucket = 0, entry = 0;
    double cost = 0;
  };
  /// Collective over the world.
  MatrixHomes(const Context& context, const std::vector<ParamBucket*>& buckets,
              const std::vector<Matrix>& matrices);

  /// to = transform(from) for every matrix; `from` and `to` are shares by bucket and may be the
  /// same memory. `transform` works in place on a contiguous matrix. Collective over the cuboid.
  void visit(const std::vector<TensorView>& from, const std::vector<TensorView>& to,
             const std::function<void(TensorView)>& transform);
  /// Bytes that this rank sends in one visit of all.
  void predict(Ledger& ledger) const;

 private:
  struct Guest {
    std::size_t bucket = 0;
    index_t rows = 0, cols = 0;
    index_t first = 0, count = 0;  // own range of the share
    std::vector<Box> boxes;        // of that range, in its order
  };
  /// Another rank's part of a matrix that is at home here.
  struct Peer {
    int rank = 0;
    index_t count = 0;
    std::vector<Box> boxes;
  };
  /// What of a round is under way.
  struct Round {
    index_t number = 0;
    Tensor staging;  // the peers' parts one after another
    Work arriving;
  };

  [[nodiscard]] const Guest& guest(index_t number) const {
    return guests_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] index_t own_guest(index_t round) const;
  [[nodiscard]] index_t elsewhere(index_t number) const;
  void meet_peers();
  [[nodiscard]] Round start(index_t number, const std::vector<TensorView>& from) const;
  void transform_guest(const Round& round, const std::vector<TensorView>& from,
                       const std::vector<TensorView>& to,
                       const std::function<void(TensorView)>& transform) const;
  /// Messages of a round; outward they go to the homes.
  [[nodiscard]] std::vector<Exchange> messages(const Round& round, bool outward,
                                               const std::vector<TensorView>& shares) const;

  const Context& context_;
  std::vector<Guest> guests_;
  HomePlan plan_;
  std::vector<std::vector<Peer>> peers_;  // by round, of the matrix at home here
};

}  // namespace t3d
