#include "tensor3d/refined_routes.hpp"

#include <set>

#include "core/route.hpp"
#include "tensor3d/meeting_shards.hpp"
#include "tensor3d/one_bucket.hpp"
#include "tensor3d/refinement.hpp"

namespace t3d {
namespace {

/// Of one bucket after the other: tables of other ranks are there for one at a time.
class Router {
 public:
  Router(const Plan& plan, int rank)
      : plan_(plan),
        mesh_(plan.mesh()),
        rank_(rank),
        here_(mesh_.coord_of(rank)),
        classes_(cut_classes(plan)),
        own_(parameter_buckets(ModelShape(plan.model, plan.replica(here_.d)),
                               mesh_.seen_from(here_.d), here_)) {}

  RefinedRoutes run() const {
    RefinedRoutes result;
    const auto none = std::make_shared<const RefinedBucket>();
    std::map<std::size_t, std::shared_ptr<const RefinedBucket>> known;
    for (std::size_t bucket = 0; bucket < own_.size(); ++bucket) {
      if (own_[bucket].frozen) {  // nothing of it travels
        result.push_back(none);
        continue;
      }
      auto& routes = known[bucket_cut_like(plan_.model, bucket)];
      if (routes == nullptr) routes = std::make_shared<const RefinedBucket>(routes_of(bucket));
      result.push_back(routes);
    }
    return result;
  }

 private:
  [[nodiscard]] RefinedBucket routes_of(std::size_t bucket) const {
    const ShardBoxes own = boxes_of(own_[bucket]);
    std::vector<std::vector<MeetingShard>> others;  // by class
    for (const std::vector<index_t>& replicas : classes_.replicas)
      others.push_back(meeting_shards(plan_.model, plan_.replica(replicas.front()), bucket, own));
    RefinedBucket routes;
    for (std::size_t entry = 0; entry < own.size(); ++entry)
      if (!own[entry].empty()) add_entry(own[entry], others, entry, routes);
    return routes;
  }

  /// By replica, what it holds of this rank's part of an entry.
  [[nodiscard]] std::vector<std::vector<HeldBox>> held(
      const std::vector<std::vector<MeetingShard>>& others, std::size_t entry) const {
    std::vector<std::vector<HeldBox>> boxes(classes_.of.size());
    for (std::size_t d = 0; d < boxes.size(); ++d)
      for (const MeetingShard& shard : others[classes_.of[d]]) {
        if (shard.boxes[entry].empty()) continue;
        const auto& [none, i, j, k] = shard.coord;
        const int rank = mesh_.rank_of({static_cast<index_t>(d), i, j, k});
        for (const PlacedBox& piece : shard.boxes[entry]) boxes[d].push_back({rank, piece.box});
      }
    return boxes;
  }

  void add_entry(const std::vector<PlacedBox>& pieces,
                 const std::vector<std::vector<MeetingShard>>& others, std::size_t entry,
                 RefinedBucket& routes) const {
    for (const CellPart& part : refine(held(others, entry), rank_, here_.d)) {
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
    for (const int holder : *part.holders) {
      auto& route = routes.holders[holder];
      if (!route.items.empty() && route.items.back().first + route.items.back().count == first)
        route.items.back().count += count;
      else
        route.items.push_back({first, count});
      route.count += count;
    }
  }

  const Plan& plan_;
  MeshShape mesh_;
  int rank_;
  Coord here_;
  CutClasses classes_;
  std::vector<BucketTable> own_;
};

template <class Item>
index_t bytes_of(const std::map<int, RefinedRoute<Item>>& routes) {
  constexpr std::size_t kNode = 4 * sizeof(void*);  // of a std::map, beside its value
  std::size_t bytes = 0;
  for (const auto& [rank, route] : routes)
    bytes += kNode + sizeof(std::pair<const int, RefinedRoute<Item>>) +
             route.items.capacity() * sizeof(Item);
  return static_cast<index_t>(bytes);
}

}  // namespace

RefinedRoutes refined_routes(const Plan& plan, int rank) { return Router(plan, rank).run(); }

index_t table_bytes(const RefinedRoutes& routes) {
  index_t bytes = std::ssize(routes) * index_t{sizeof(routes.front())};
  std::set<const RefinedBucket*> seen;
  for (const auto& bucket : routes)
    if (seen.insert(bucket.get()).second)
      bytes += bytes_of(bucket->owners) + bytes_of(bucket->holders) +
               static_cast<index_t>(bucket->entries.capacity() * sizeof(RefinedBucket::Columns));
  return bytes;
}

}  // namespace t3d
