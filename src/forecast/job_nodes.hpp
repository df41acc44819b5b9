// The nodes that a job asks for, and how its ranks reach each other on them.
#pragma once
#include <vector>

#include "core/plan.hpp"
#include "forecast/cluster/cluster.hpp"

namespace t3d {

struct JobPart {
  std::size_t node_class = 0;  // of Cluster::classes
  index_t nodes = 0;
  friend bool operator==(const JobPart&, const JobPart&) = default;
};

/// Peers of a rank in one of its groups, by the level at which messages reach them.
struct Reach {
  struct At {
    std::size_t level = 0;  // of Cluster::levels
    index_t peers = 0;
    bool between = false;  // on other nodes
    friend bool operator==(const At&, const At&) = default;
  };
  std::vector<At> levels;
  index_t peers = 0;    // in all
  index_t groups = 1;   // that do the same on the rank's node at once
  index_t senders = 1;  // ranks of its node: all send through its adapters at once
  friend bool operator==(const Reach&, const Reach&) = default;
};

/// Nodes are numbered class by class in the order of the parts; those under one switch follow each
/// other. World ranks follow nodes.
class JobNodes {
 public:
  /// `cluster` must outlive it. Error(config) where a part has more nodes than its class,
  /// and where there are more ranks than an int holds.
  JobNodes(const Cluster& cluster, std::vector<JobPart> parts);

  [[nodiscard]] const Cluster& cluster() const { return cluster_; }
  [[nodiscard]] const std::vector<JobPart>& parts() const { return parts_; }
  [[nodiscard]] index_t ranks() const { return ranks_; }
  [[nodiscard]] index_t nodes() const { return nodes_; }
  struct Seat {
    std::size_t node_class = 0;
    index_t node = 0, ranks_per_node = 1, place = 0;  // place: on the node
  };
  [[nodiscard]] Seat seat(index_t world_rank) const;
  /// Of the rank at `coord`; the plan's places are world ranks.
  [[nodiscard]] Reach reach(const Plan& plan, const Coord& coord, Group group) const;
  /// How many times longer bytes take at this level than on links of their own: all nodes of the
  /// job below one switch send at once through its links upward (Level::oversubscription). >= 1.
  [[nodiscard]] double oversubscribed(std::size_t level) const;

 private:
  [[nodiscard]] std::size_t level_between(const Seat& a, const Seat& b) const;

  const Cluster& cluster_;
  std::vector<JobPart> parts_;
  index_t ranks_ = 0, nodes_ = 0;
};

}  // namespace t3d
