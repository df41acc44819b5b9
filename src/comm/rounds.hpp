// Collectives of O(log P) messages per rank, for groups of more than kFlatRanks ranks. All of them
// go in rounds: what a rank sends in one depends on what it has received before.
#pragma once
#include "comm/collectives.hpp"
#include "comm/lanes.hpp"

namespace t3d {

/// Lanes of which each send waits for a number of receives. Receives are posted at once and taken
/// in the order in which they were added.
class Rounds {
 public:
  explicit Rounds(const Party& party) : lanes_(party.engine.transport(), party.tag) {}
  /// May go when all receives added so far have arrived.
  Lane& send_to(int peer) {
    after_.push_back(lanes_.receives().size());
    return lanes_.send_to(peer);
  }
  Lane& receive_from(int peer) { return lanes_.receive_from(peer); }
  /// Calls `arrived(n)` for the n-th receive once it and all before it are here; true at the end.
  template <class Arrived>
  bool advance(const Arrived& arrived);
  [[nodiscard]] Traffic traffic() const { return lanes_.traffic(); }
  /// Later rounds wait for this one's peer, not for theirs.
  void missing(std::set<int>& peers) const;

 private:
  Lanes lanes_;
  std::vector<std::size_t> after_;  // of each send: the receives before it
  std::size_t arrived_ = 0;
};

template <class Arrived>
bool Rounds::advance(const Arrived& arrived) {
  lanes_.advance_receives();
  const std::vector<Lane>& receives = lanes_.receives();
  while (arrived_ < receives.size() && receives[arrived_].finished()) arrived(arrived_++);
  bool finished = arrived_ == receives.size();
  for (std::size_t at = 0; at < after_.size(); ++at) {
    Lane& lane = lanes_.sends()[at];
    finished = after_[at] <= arrived_ && (lane.finished() || lane.advance()) && finished;
  }
  return finished;
}

/// Parts collected at doubling distances (Bruck et al. 1997), any number of ranks and any counts.
[[nodiscard]] OperationPtr make_gather_in_rounds(const Party& party, ConstTensorView part,
                                                 TensorView whole, std::span<const index_t> counts);
/// Recursive doubling over the largest power of two D <= P: ranks D + r first give their numbers to
/// rank r, and get the result from it. The order is that of communicator.hpp.
[[nodiscard]] OperationPtr make_tree_all_reduce(const Party& party, TensorView x, ReduceOp op);
/// A binomial tree, chunk by chunk.
[[nodiscard]] OperationPtr make_tree_broadcast(const Party& party, TensorView x, int root);

}  // namespace t3d
