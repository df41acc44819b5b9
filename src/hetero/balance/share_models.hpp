// What every replica's step will take with any number of units: time = fixed + units x cost, both
// tracked over the steps of the run (regime.hpp). A time per unit means the same before and after a
// change of shares, so the steps of both count.
#pragma once
#include "hetero/balance/regime.hpp"
#include "hetero/balance/share_controller.hpp"

namespace t3d {

class ShareModels {
 public:
  explicit ShareModels(const BalanceOptions& options);

  void observe(std::span<const ReplicaTimes> replicas, std::span<const index_t> shares,
               double now_seconds);
  /// Every replica that has units was measured for more than half a window.
  [[nodiscard]] bool ready() const { return ready_; }
  /// Many changed together (regime.hpp).
  [[nodiscard]] bool correlated() const;

  /// What its units cost, over the steps of the run.
  [[nodiscard]] const RegimeTracker& tracker(std::size_t n) const { return replicas_[n].cost; }

  /// Of replica n with that many units. Infinity where nothing is known of the replica.
  [[nodiscard]] double seconds(std::size_t n, double units) const;
  /// Standard error of that.
  [[nodiscard]] double error(std::size_t n, double units) const;
  /// No shares with this sum make the largest of seconds() less.
  [[nodiscard]] double bound(index_t total) const;
  /// Equal units would take all replicas equally long, within the tolerance.
  [[nodiscard]] bool equal(index_t total) const;

 private:
  struct Replica {
    RegimeTracker cost, fixed;
    double predicted_cost = 0;  // 0 = no prediction
    bool idle = false;          // no units
  };
  [[nodiscard]] double cost(std::size_t n) const;

  BalanceOptions options_;
  std::vector<Replica> replicas_;
  bool ready_ = false;
  double noise_ = 0;  // of one step, relative: the median of all replicas
};

}  // namespace t3d
