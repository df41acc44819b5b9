// The way of a rank's shards from one plan to another: whom it sends which pieces of a bucket, and
// from whom it receives them. Computed from the two plans; tables are made of those ranks alone
// that have something for each other, and once for all buckets that are cut alike.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "core/route.hpp"
#include "tensor3d/meeting_shards.hpp"

namespace t3d {

class ShardRoutes {
 public:
  /// Of world rank `rank`, which may be idle under either plan.
  ShardRoutes(const Plan& before, const Plan& after, int rank);

  /// The replicas that alone hold what travels; -1: all of them do.
  struct Holders {
    index_t from = -1, to = -1;
  };
  using Visit = std::function<void(int peer, const RoutePiece& piece)>;
  /// Calls visit for what this rank receives, or sends, of the strips of a bucket, itself among the
  /// peers. The pieces between two ranks come in the same order on both.
  void for_each_received(std::size_t bucket, const std::vector<Strip>& strips,
                         const Holders& holders, const Visit& visit);
  void for_each_sent(std::size_t bucket, const std::vector<Strip>& strips, const Holders& holders,
                     const Visit& visit);

  /// Whether this rank gets something of what replica `holder` alone is to hold; -1: all are.
  [[nodiscard]] bool receives(index_t holder) const {
    return to_.here && (holder < 0 || holder == to_.here->d);
  }
  /// Elements of this rank's shard under the plan to come.
  [[nodiscard]] index_t count_to(std::size_t bucket) const;
  /// Host memory of the tables that are there.
  [[nodiscard]] index_t table_bytes() const;

 private:
  /// One of the two plans.
  struct Side {
    explicit Side(const Plan& plan_, int rank);
    [[nodiscard]] int rank_at(const Coord& coord) const {
      return active[static_cast<std::size_t>(mesh.rank_of(coord))];
    }
    /// This rank's; none where it is idle.
    [[nodiscard]] BucketTable table(std::size_t bucket) const;
    const Plan& plan;
    MeshShape mesh;
    std::vector<int> active;       // world ranks
    std::vector<index_t> replica;  // by world rank; -1 = idle
    CutClasses classes;
    std::optional<Coord> here;
  };
  /// Of one bucket, and all that are cut like it.
  struct Tables {
    ShardBoxes own_from, own_to;
    std::map<std::size_t, std::vector<MeetingShard>> senders, receivers;  // by class of the peer's
  };
  [[nodiscard]] Tables& tables(std::size_t bucket);
  /// The replica from which `receiver` gets what all replicas hold: its own, if it had a place.
  [[nodiscard]] index_t source_replica(int receiver) const;

  int rank_;
  Side from_, to_;
  std::map<std::size_t, Tables> tables_;  // by the first bucket that is cut so
};

}  // namespace t3d
