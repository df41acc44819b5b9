// Replanner: would another plan, whose change moves state (feature widths, storage, places, shape),
// be worth its price by now? It keeps what the steps measured as speeds, asks the planner now and
// then for the best plan, and adds up what the present plan loses against it. The change is due
// when the loss has reached its price (balance/ski_rental.hpp). A change that measures worse than
// what was before is taken back. Every rank has one, all are fed with the same numbers, and so all
// have the same answers.
#pragma once
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/run_event.hpp"
#include "hetero/balance/balancer.hpp"
#include "hetero/balance/ski_rental.hpp"
#include "hetero/planner/planner.hpp"

namespace t3d {

class Replanner {
 public:
  /// `request`: replicas and cuboids are set where they stay as they are, and absent where the
  /// input leaves them open; what else it asks for is taken from the plan in force. `known`: speeds
  /// measured at the start, for the links and the form of the curves; the steps say their height.
  Replanner(const BalanceOptions& options, PlanRequest request, Speeds known, RankFacts facts);

  /// After a step with `plan` in force. `price_seconds`: of a change that moves state. The plan of
  /// the steps to come, or nothing: it stays.
  [[nodiscard]] std::optional<Plan> observe(const StepReport& report, const Plan& plan,
                                            double price_seconds);
  /// One line: why the last plan was proposed.
  [[nodiscard]] const std::string& reason() const { return reason_; }

  /// Why a plan stays that is predicted to be slower than it could be; told when the reason is
  /// another one, and empty otherwise.
  [[nodiscard]] std::string kept() { return std::exchange(kept_, {}); }

  /// The plan last proposed is in force: it is on trial.
  void taken();
  /// Only the batch was divided anew: a trial goes on.
  void restart();
  /// The user has asked for another plan: its shape stays.
  void keep_shape();
  /// Medians of what the steps measured since then, as speeds. A rank that has no work under this
  /// plan has the speed that it was last measured with.
  [[nodiscard]] Speeds measured(const Plan& plan) const { return measured(plan, looks_.size()); }

 private:
  /// Questions left out after a change was taken back; twice as many after each further one.
  static constexpr index_t kFirstHold = 4;
  /// Of a plan that was proposed: is it as good as was thought?
  struct Trial {
    Plan before;
    double before_seconds = 0, before_error = 0;  // of a step, and of its median; 0 = not known
    bool begun = false;                           // the plan has been taken
  };

  /// What the last `looks` steps measured.
  [[nodiscard]] Speeds measured(const Plan& plan, std::size_t looks) const;
  /// What the last steps under a plan say is known from now on.
  void learn();
  enum class Kept { no, none_better, gains_little, not_paid, no_memory, on_hold };
  /// The first reason counts, but that a better plan waits for its price more than all others.
  void keep(Kept why, std::string text);
  void tell_kept();
  void look(const Plan& plan, double price_seconds);
  void consider(const Plan& plan, const StepSeconds& now, const Speeds& speeds, bool shape_open,
                double price_seconds);
  [[nodiscard]] std::optional<Plan> judge(const Plan& plan);
  [[nodiscard]] PlanRequest request_for(const Plan& plan, bool shape_open) const;
  [[nodiscard]] bool shape_is_open(const Plan& plan) const;
  /// The median over the looks of the slowest rank's wall time of a step; its standard error.
  [[nodiscard]] std::pair<double, double> step_seconds() const;

  BalanceOptions options_;
  PlanRequest request_;
  Speeds known_;
  RankFacts facts_;
  bool replicas_open_, cuboid_open_;
  std::vector<std::vector<RankTimes>> looks_;  // the last ones under this plan, by world rank
  std::optional<Plan> looked_at_;              // the plan of the looks
  index_t last_step_ = 0, last_question_ = 0;
  SkiRental rental_;
  std::optional<Plan> better_;
  double loss_seconds_ = 0;  // of a step, against better_
  double price_ = 0;         // of the change to it
  std::optional<Trial> trial_;
  index_t hold_ = 0, next_hold_ = kFirstHold;
  std::string reason_;
  std::pair<Kept, std::string> keeps_;  // of the last look
  Kept told_ = Kept::no;
  std::string kept_;
};

/// Whether parts of the model may change hands under this plan without a change of its shape: some
/// feature is cut, or whole matrices are dealt, and every leaf is a whole replica.
[[nodiscard]] bool can_replan(const Plan& plan);

}  // namespace t3d
