// Replicas that cut a model differently have no equal shards. Their ranks meet on the common
// refinement of all cuts (tensor3d/refinement.hpp): each part of it is combined by one of its
// holders. Here: which elements a rank passes to which owner, and which columns it owns. Computed
// from the plan, for any rank.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "core/plan.hpp"

namespace t3d {

/// A rectangle of a rank's shard, `ld` elements from row to row.
struct ShardPiece {
  index_t offset = 0, rows = 0, cols = 0, ld = 0;
  [[nodiscard]] index_t count() const { return rows * cols; }
};

/// Owned columns [first, first + count) that follow on each other in a message too.
struct ColumnRun {
  index_t first = 0, count = 0;
};

/// What travels between this rank and another one, or stays where both are this rank.
template <class Item>
struct RefinedRoute {
  index_t count = 0;  // elements
  std::vector<Item> items;
};

struct RefinedBucket {
  struct Columns {
    index_t first = 0, last = 0;  // owned columns [first, last) ...
    std::size_t entry = 0;        // ... of this entry of the bucket
  };
  index_t columns = 0;  // owned ones
  std::vector<Columns> entries;
  std::map<int, RefinedRoute<ShardPiece>> owners;  // by rank: what of this shard they combine
  std::map<int, RefinedRoute<ColumnRun>> holders;  // by rank: whose elements the owned columns are
};

/// By bucket (tensor3d/parameters.hpp), for rank number `rank` of plan.active(). Buckets that are
/// cut alike have one table between them.
using RefinedRoutes = std::vector<std::shared_ptr<const RefinedBucket>>;
[[nodiscard]] RefinedRoutes refined_routes(const Plan& plan, int rank);

/// Host memory that they take, in bytes.
[[nodiscard]] index_t table_bytes(const RefinedRoutes& routes);

}  // namespace t3d
