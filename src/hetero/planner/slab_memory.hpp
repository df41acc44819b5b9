// Bytes that a rank needs, for any number of sequences on its slab, without making a plan for each
// number. Internal to the planner.
#pragma once
#include <map>
#include <vector>

#include "hetero/cost/memory.hpp"
#include "hetero/planner/slab_key.hpp"

namespace t3d {

/// Bytes of a rank by its part of the shards at rest of its fibre, against an even part.
class StorageCurve {
 public:
  void add(double part, double bytes);  // by ascending part
  /// The part for which these bytes more (or less) than for an even one suffice; -1: for none.
  [[nodiscard]] double part(double bytes) const;
  /// What none of the shards saves (below 0), and what all of them cost.
  [[nodiscard]] double without() const { return bytes_.front(); }
  [[nodiscard]] double fibre() const {
    return (bytes_.back() - bytes_.front()) / (parts_.back() - parts_.front());
  }

 private:
  std::vector<double> parts_, bytes_;  // ascending
};

class SlabMemory {
 public:
  /// Of `plan` its choices, widths, leaves and numbers of micro-batches count; its tokens and
  /// storage do not.
  explicit SlabMemory(const Plan& plan);

  /// Of the rank at `at`, where its slab has `sequences` of each micro-batch, and an even part of
  /// the shards at rest.
  [[nodiscard]] index_t needed(const Coord& at, index_t sequences, bool on_gpu);
  /// What other parts of the shards at rest add to that, where there are several slabs.
  [[nodiscard]] StorageCurve storage(const Coord& at, index_t sequences, bool on_gpu) const;
  /// Replicas of equal numbers need the same in equal places.
  [[nodiscard]] int kind(index_t d) const { return kind_[static_cast<std::size_t>(d)]; }
  /// Some rank of the slab computes whole matrices (Muon).
  [[nodiscard]] bool owns_matrices(index_t d, index_t i);

 private:
  using Key = SlabKeys::Key;
  static void clear(ReplicaPlan& replica);
  [[nodiscard]] MemoryCost cost(const Coord& at, index_t sequences);

  Plan probe_;  // no replica has samples, but the one that is asked for
  CostMemoPtr memo_ = std::make_shared<CostMemo>();
  std::vector<int> kind_;    // by replica: those alike
  std::vector<Key> passes_;  // by replica: micro-batches of each leaf
  std::map<Key, MemoryCost> costs_;
};

}  // namespace t3d
