// Memory of aggregation and optimizers: the same pieces in the same order as train/step/update.cpp,
// train/aggregate and train/optimizer. Internal to `hetero`.
#pragma once
#include <memory>

#include "hetero/cost/layer_memory.hpp"

namespace t3d {

class UpdateMemory {
 public:
  virtual ~UpdateMemory() = default;
  /// As Update's (train/step/update.hpp).
  virtual void bucket_done(BucketMemory& bucket) = 0;
  virtual void leaf_done(index_t leaf) = 0;
  virtual void aggregate() = 0;
  virtual void apply() = 0;
  /// As AggregationMemory's.
  [[nodiscard]] virtual index_t table_bytes() const = 0;
};
/// With the optimizers' state, zero.
[[nodiscard]] std::unique_ptr<UpdateMemory> make_update_memory(MemoryWalk& walk,
                                                               const RankView& rank,
                                                               ModelMemory& model);

/// How leaves meet (train/aggregate). Buckets are named by their place in ModelMemory::all().
class AggregationMemory {
 public:
  virtual ~AggregationMemory() = default;
  virtual void keep(std::size_t bucket) = 0;
  virtual void start(std::size_t bucket) = 0;
  virtual void finish() = 0;
  /// Host memory of the tables of who combines what.
  [[nodiscard]] virtual index_t table_bytes() const { return 0; }
};
[[nodiscard]] std::unique_ptr<AggregationMemory> make_aggregation_memory(MemoryWalk& walk,
                                                                         const RankView& rank,
                                                                         ModelMemory& model);

/// A transform of all whole matrices (train/optimizer/whole_matrices.cpp, newton_schulz.cpp).
void walk_whole_matrices(MemoryWalk& walk, const RankView& rank);

}  // namespace t3d
