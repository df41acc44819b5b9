// Balancer: from the times that all ranks report to the division of the batch in the steps to come.
// The parts that it deals with are slabs, over all replicas: a replica's share is the sum of its
// slabs', and the widths of the token axis are what they have of it. Every rank has a balancer, all
// are fed with the same numbers, and so all have the same answers.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "core/run_event.hpp"
#include "hetero/balance/share_controller.hpp"

namespace t3d {

/// What is known of the ranks, by world rank.
struct RankFacts {
  /// The node has more ranks than cores, so that only CPU time says how fast the rank is.
  std::vector<bool> crowded;
  std::vector<index_t> room_bytes;  // for tensors, on CPUs also for messages; 0 = not known
  std::vector<bool> on_gpu;
};

class Balancer {
 public:
  /// `micro`: most sequences of a micro-batch, 0 = all at once.
  Balancer(const BalanceOptions& options, index_t micro, RankFacts facts);

  /// After a step with `plan` in force. The plan of the steps to come, or nothing: it stays.
  [[nodiscard]] std::optional<Plan> observe(const StepReport& report, const Plan& plan);
  /// One line: why the last answer was what it was.
  [[nodiscard]] std::string reason() const;

 private:
  /// The parts that units are dealt to: slabs, or replicas where whole leaves move.
  struct Parts {
    std::vector<std::vector<int>> ranks;  // world ranks of each
    std::vector<std::vector<Coord>> coords;
    std::vector<double> fixed_share;  // by rank: of its streams' time, what no unit costs
    index_t unit = 1;                 // sequences
    bool by_replica = false;
  };
  void set_up(const Plan& plan);
  void add_rank(const Plan& plan, const Coord& coord, int rank);
  void make_controller();
  /// Whether all ranks of the part have room for what they would hold under `plan`.
  [[nodiscard]] bool fits(const Plan& plan, std::size_t part) const;
  /// Where a part would not fit, its limit is set, and true.
  [[nodiscard]] bool limit(const Plan& plan, std::span<const index_t> units,
                           std::span<const index_t> next);
  [[nodiscard]] std::vector<index_t> units_of(const std::vector<index_t>& slabs,
                                              const Plan& plan) const;
  [[nodiscard]] std::vector<index_t> slabs_of(std::span<const index_t> units,
                                              const Plan& plan) const;
  [[nodiscard]] ReplicaTimes times_of(const std::vector<int>& ranks,
                                      const StepReport& report) const;

  BalanceOptions options_;
  index_t micro_;
  RankFacts facts_;
  Parts parts_;
  ShareLimits limits_;
  std::optional<Plan> known_;  // that parts_ belong to
  std::unique_ptr<ShareController> controller_;
};

}  // namespace t3d
