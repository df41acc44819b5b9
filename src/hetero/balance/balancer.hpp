// Balancer: from the times that all ranks report to the division of the batch in the steps to come.
// The parts that it deals with are slabs, over all replicas: a replica's share is the sum of its
// slabs', and the widths of the token axis are what they have of it. Every rank has a balancer, all
// are fed with the same numbers, and so all have the same answers.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/plan.hpp"
#include "core/run_event.hpp"
#include "hetero/balance/idle_parts.hpp"
#include "hetero/balance/share_controller.hpp"
#include "hetero/balance/step_trial.hpp"
#include "hetero/planner/slab_seconds.hpp"

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
  /// `micro`: most sequences of a micro-batch, 0 = all at once. `known`: speeds from before the
  /// run, for parts that no step measures.
  Balancer(const BalanceOptions& options, index_t micro, RankFacts facts,
           std::optional<Speeds> known = {});

  /// After a step with `plan` in force. The plan of the steps to come, or nothing: it stays.
  [[nodiscard]] std::optional<Plan> observe(const StepReport& report, const Plan& plan);
  /// One line: why the last answer was what it was.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// What keeps the batch from following the ranks' speeds, in a sentence; told once, and empty
  /// otherwise.
  [[nodiscard]] std::string hindrance() { return std::exchange(hindrance_, {}); }

 private:
  struct Member {
    int rank = 0;
    Coord coord;
    std::size_t slab = 0;  // over all replicas
    LinearWork work;
  };
  /// The parts that units are dealt to: slabs, or replicas where whole leaves move.
  struct Parts {
    std::vector<std::vector<Member>> members;
    index_t unit = 1;  // sequences; 0 = none can move
    bool by_replica = false;
    [[nodiscard]] std::size_t size() const { return members.size(); }
  };
  void take(const Plan& plan);
  [[nodiscard]] bool divides_as_before(const Plan& plan) const;
  void set_up(const Plan& plan);
  void add_rank(const Plan& base, const Coord& coord, int rank);
  void make_controller(const Plan& plan);
  /// Of a unit by part, from the speeds before the run.
  [[nodiscard]] std::vector<double> known_seconds(const Plan& plan) const;
  [[nodiscard]] ReplicaTimes times_of(std::size_t part, const StepReport& report) const;
  /// The shares to come, or nothing; `times` gets the predictions of parts without units.
  [[nodiscard]] std::optional<std::vector<index_t>> next_units(std::vector<ReplicaTimes>& times);
  [[nodiscard]] std::optional<Plan> change(std::vector<ReplicaTimes> times, const Plan& plan);
  /// Looks whether ranks differ for long while micro-batches are too small to be cut otherwise.
  void look_for_hindrance(const std::vector<ReplicaTimes>& times, const Plan& plan);
  /// Whether all ranks of the part have room for what they would hold under `plan`.
  [[nodiscard]] bool fits(const Plan& plan, std::size_t part) const;
  /// Where a part would not fit, its limit is set, and true.
  [[nodiscard]] bool limit(const Plan& plan, const std::vector<index_t>& next);
  [[nodiscard]] std::vector<index_t> units_of(const Plan& plan) const;
  [[nodiscard]] Plan with_units(const Plan& plan, const std::vector<index_t>& units) const;

  BalanceOptions options_;
  index_t micro_;
  RankFacts facts_;
  std::optional<Speeds> speeds_;
  Parts parts_;
  ShareLimits limits_;
  std::optional<Plan> known_;           // that parts_ belong to
  index_t number_ = 0;                  // of it, as StepReport::plan
  std::vector<index_t> slabs_, units_;  // sequences by slab, units by part
  std::unique_ptr<ShareController> controller_;
  std::optional<IdleParts> idle_;
  StepTrial trial_;           // of the last change, by whole steps
  index_t since_change_ = 0;  // reports
  std::string reason_, hindrance_;
  index_t apart_ = 0;  // reports in a row in which ranks differed and nothing was changed
  bool told_ = false;
};

}  // namespace t3d
