// The main job's balancing: feeds the balancer with what the steps report, holds the next plan
// until it can be taken, and keeps every plan of the run as a file that debug.replan replays.
#pragma once
#include <optional>
#include <string>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "config/config_check.hpp"
#include "core/random.hpp"
#include "hetero/balance/replanner.hpp"
#include "run/memory_room.hpp"

namespace t3d {

/// Of the input. Who wrote how the batch is divided (batch.shares, mesh.tokens) keeps it: then
/// `off`, unless balance.kind is written, too.
[[nodiscard]] BalanceOptions balance_options(const Config& config, const Origins& origins);

class Balancing {
 public:
  /// What else is known where state may move, too.
  struct Replanning {
    PlanRequest request;  // as Replanner's
    Speeds known;
  };
  /// Collective over `world`. `micro`: batch.micro. `known`: the ranks' speeds from before the run.
  /// No `replanning`: only the batch is divided anew.
  Balancing(Communicator& world, const BalanceOptions& options, index_t micro,
            const MemoryRoom& room, bool on_gpu, std::optional<Speeds> known,
            std::optional<Replanning> replanning);

  /// Looks no further while a plan waits.
  void observe(const StepReport& report, const Plan& plan);
  /// A plan waits to be taken.
  [[nodiscard]] bool due() const { return next_.has_value(); }
  /// A number of that plan, which all ranks must have in common before it is taken; 0 = none waits.
  [[nodiscard]] std::uint64_t decision() const { return next_ ? stream_of(next_->text()) | 1U : 0; }
  [[nodiscard]] Plan take();
  /// The plan that take() gave is in force.
  void taken();
  /// The plan has changed because the user asked for it: what was to come is out of date, and the
  /// shape stays.
  void forget();
  /// Why the plan that take() gave is better; one line.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// As Balancer::hindrance(), and Replanner::kept().
  [[nodiscard]] std::string hindrance();

 private:
  RankFacts facts_;
  Balancer balancer_;
  std::optional<Replanner> replanner_;
  std::optional<Plan> next_;
  bool moves_state_ = false;  // the replanner proposed it
  std::string reason_;
};

/// Writes the plan that is in force from step `after` + 1 on to DIR/plans/AFTER.toml and to
/// DIR/plan.toml. Throws Error(io).
void keep_plan_file(const std::string& dir, index_t after, const Plan& plan);

}  // namespace t3d
