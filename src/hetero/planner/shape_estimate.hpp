// A cheap estimate of a step's seconds for a shape, without making its plan: ranks are collapsed
// into classes of about equal speed, slabs are filled in the order of speed, sequences are dealt
// whole. To choose the few shapes that are worth pricing exactly.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "hetero/planner/planner.hpp"
#include "hetero/planner/rank_order.hpp"

namespace t3d {

struct MeshCandidate {
  index_t replicas = 1;
  Cuboid cuboid{1, 1, 1};
  [[nodiscard]] index_t ranks() const { return replicas * cuboid[0] * cuboid[1] * cuboid[2]; }
  /// "2 x (4 x 2 x 1)"
  [[nodiscard]] std::string text() const;
  /// Of two equally fast meshes the one that is less: fewer axes are cut, then r, q and the
  /// replicas are smaller.
  [[nodiscard]] std::array<index_t, 4> complexity() const;
  friend bool operator==(const MeshCandidate&, const MeshCandidate&) = default;
};

class ShapeEstimates {
 public:
  ShapeEstimates(const PlanRequest& request, const Speeds& speeds);

  [[nodiscard]] index_t ranks() const { return std::ssize(order_.ranks); }  // with any speed
  /// Numbers of ranks with which a shape may end earlier than with more: at the ends of classes.
  [[nodiscard]] std::vector<index_t> useful_ranks() const;
  /// candidate.ranks() <= ranks(). `most`: sequences that the slabs can hold (MemoryEstimate), in
  /// the order of speed, together enough; empty: any number.
  [[nodiscard]] double seconds(const MeshCandidate& candidate, std::span<const index_t> most = {});
  [[nodiscard]] const RankOrder& order() const { return order_; }

 private:
  /// What all shapes of one slab (q, r) have in common.
  struct Slab {
    std::vector<double> sequence_seconds, update_seconds;  // by class; the update where p = 1
    double message_latency = 0;                            // of activations in a step
    double message_seconds = 0;                            // for each sequence beside that
    double weight_bytes = 0;                               // of all that a rank gathers and sums
    double gradient_bytes = 0;                             // of its gradients
  };
  const Slab& slab(index_t q, index_t r);
  void set_messages(const Plan& plan, index_t q, index_t r, Slab& slab) const;
  [[nodiscard]] double compute_seconds(const Slab& slab, const MeshCandidate& candidate,
                                       std::span<const index_t> most) const;
  [[nodiscard]] const LinkSpeed& link(index_t span) const;

  const PlanRequest& request_;
  const Speeds& speeds_;
  RankOrder order_;
  struct Class {
    index_t end = 0;  // in the order
    int rank = 0;     // stands for all: its slowest
  };
  std::vector<Class> classes_;
  index_t node_ranks_ = 0;  // of the smallest node
  bool one_node_ = true;
  std::map<std::pair<index_t, index_t>, Slab> slabs_;
};

}  // namespace t3d
