// How long a step takes under a plan, from what is known about the ranks' speed: the price by which
// plans are chosen, and a bound that no plan of the same work can beat. Pure arithmetic.
//
// The ranks of a slab meet at every product, so each class of operators takes them as long as the
// slowest of them. Slabs meet once per layer, where weights are gathered: the slowest slab is its
// replica's time. Which weights' messages travel behind the products says
// hetero/cost/exposed_messages.hpp; activations do not. Whole matrices (Muon) are
// dealt to all ranks of a replica, which meet before and after them: the slowest is their time.
#pragma once
#include <vector>

#include "hetero/speed/speeds.hpp"

namespace t3d {

struct ReplicaSeconds {
  double compute = 0;   // of its slowest slab
  double layers = 0;    // of it, without whole matrices: what messages can travel behind
  double messages = 0;  // inside the replica, as far as products do not hide them
  [[nodiscard]] double sum() const { return compute + messages; }
};

struct StepSeconds {
  double step = 0;
  std::vector<ReplicaSeconds> replicas;
  double update_messages = 0;  // aggregation of the replicas, optimizer, report
  std::vector<double> own;     // by slot (MeshShape): computing, without waiting for anybody
  double bound = 0;            // as work_bound() of the work of all slots

  [[nodiscard]] double compute() const;            // of the replica that computes longest
  [[nodiscard]] std::size_t slowest_slot() const;  // that computes longest
  /// 1 where every rank of the job always computes.
  [[nodiscard]] double efficiency() const { return step > 0 ? bound / step : 0; }
};

/// Infinity where a rank with a place has speed 0. Throws Error(config) where `speeds` are those of
/// another number of ranks.
[[nodiscard]] StepSeconds predict_step(const Plan& plan, const Speeds& speeds);

/// No rank has more work under the plan than its curves can tell the seconds of.
[[nodiscard]] bool trusted(const Plan& plan, const Speeds& speeds);

/// Seconds that the given work of all ranks together takes at least, however it is divided: every
/// rank computes all the time what it computes best. Certified as far as the
/// curves are right: each rank is given its best rate. Weak duality, with classes of operators
/// priced by their seconds on all ranks together; where ranks differ by one factor each it is the
/// work's seconds over the sum of speeds.
[[nodiscard]] double work_bound(const std::array<double, kWorkClasses>& work, const Speeds& speeds);

}  // namespace t3d
