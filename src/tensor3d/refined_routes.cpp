#include "tensor3d/refined_routes.hpp"

#include "core/route.hpp"
#include "tensor3d/parameters.hpp"
#include "tensor3d/refinement.hpp"

namespace t3d {
namespace {

/// boxes[replica] of one entry.
using EntryBoxes = std::vector<std::vector<HeldBox>>;

class Router {
 public:
  Router(const Plan& plan, int rank) : mesh_(plan.mesh()), rank_(rank) {
    for (int other = 0; other < static_cast<int>(mesh_.ranks()); ++other) {
      const Coord coord = mesh_.coord_of(other);
      const ModelShape shape(plan.model, plan.replica(coord.d));
      tables_.push_back(parameter_buckets(shape, mesh_.seen_from(coord.d), coord));
    }
  }

  std::vector<RefinedBucket> run() {
    std::vector<RefinedBucket> result;
    const std::vector<BucketTable>& own = tables_[static_cast<std::size_t>(rank_)];
    for (std::size_t bucket = 0; bucket < own.size(); ++bucket) {
      RefinedBucket& routes = result.emplace_back();
      if (own[bucket].frozen) continue;  // nothing of it travels
      for (std::size_t entry = 0; entry < own[bucket].entries.size(); ++entry)
        add_entry(own[bucket], bucket, entry, routes);
    }
    return result;
  }

 private:
  [[nodiscard]] EntryBoxes boxes_of(std::size_t bucket, std::size_t entry) const {
    EntryBoxes boxes(static_cast<std::size_t>(mesh_.extent(Axis::d)));
    for (int rank = 0; rank < static_cast<int>(mesh_.ranks()); ++rank) {
      const BucketTable& table = tables_[static_cast<std::size_t>(rank)][bucket];
      for (const PlacedBox& piece : table.shard_boxes(table.entries[entry]))
        boxes[static_cast<std::size_t>(mesh_.coord_of(rank).d)].push_back({rank, piece.box});
    }
    return boxes;
  }

  void add_entry(const BucketTable& own, std::size_t bucket, std::size_t entry,
                 RefinedBucket& routes) const {
    const std::vector<PlacedBox> pieces = own.shard_boxes(own.entries[entry]);
    const index_t replica = mesh_.coord_of(rank_).d;
    for (const CellPart& part : refine(boxes_of(bucket, entry), rank_, replica)) {
      const PlacedBox whole{part.box, 0};
      for (const RoutePiece& piece : route(pieces, {&whole, 1}, part.box)) {
        auto& passed = routes.owners[part.owner];
        passed.items.push_back({piece.from_offset, piece.rows, piece.cols, piece.from_ld});
        passed.count += piece.rows * piece.cols;
      }
      if (part.owner == rank_) add_owned(part, entry, routes);
    }
  }

  static void add_owned(const CellPart& part, std::size_t entry, RefinedBucket& routes) {
    const index_t first = routes.columns, count = part.box.count();
    routes.columns += count;
    if (!routes.entries.empty() && routes.entries.back().entry == entry)
      routes.entries.back().last += count;
    else
      routes.entries.push_back({first, first + count, entry});
    for (const int holder : part.holders) {
      auto& route = routes.holders[holder];
      if (!route.items.empty() && route.items.back().first + route.items.back().count == first)
        route.items.back().count += count;
      else
        route.items.push_back({first, count});
      route.count += count;
    }
  }

  MeshShape mesh_;
  int rank_;
  std::vector<std::vector<BucketTable>> tables_;  // by rank
};

}  // namespace

std::vector<RefinedBucket> refined_routes(const Plan& plan, int rank) {
  return Router(plan, rank).run();
}

}  // namespace t3d
