// CostMemo: what the ranks of a plan have in common and what is long to find, kept from one
// question to the next: a planner asks for thousands of ranks. Every answer is the same without it.
#pragma once
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "core/partition.hpp"
#include "tensor3d/frozen.hpp"
#include "tensor3d/matrix_owners.hpp"

namespace t3d {

struct ModelConfig;
struct ReplicaPlan;

/// For plans of one model.
class CostMemo {
 public:
  /// The shards of buckets at rest over one fibre.
  class Shards {
   public:
    explicit Shards(const Partition& storage);
    [[nodiscard]] bool even() const { return even_; }
    /// Of `count` elements over the fibre with `beside` ranks in each slab; not asked where even.
    [[nodiscard]] const Partition& cut(index_t count, index_t beside);

   private:
    friend class CostMemo;
    Partition storage_;
    bool even_;
    std::map<std::pair<index_t, index_t>, Partition> cuts_;
  };
  [[nodiscard]] Shards& shards(const Partition& storage);

  [[nodiscard]] const FrozenBuckets& frozen(const ModelConfig& model);

  /// Who computes which of Muon's matrices in such a replica.
  [[nodiscard]] const MatrixOwners& owners(const ModelConfig& model, const ReplicaPlan& replica);

 private:
  std::optional<FrozenBuckets> frozen_;
  std::deque<Shards> shards_;  // a deque, since its elements stay where they are
  std::map<std::pair<index_t, std::vector<index_t>>, MatrixOwners> owners_;  // ranks, speeds
};
using CostMemoPtr = std::shared_ptr<CostMemo>;

}  // namespace t3d
