// Replanner: would another plan, whose change moves state (feature widths, storage, places), be
// worth its price by now? It keeps what the steps measured as speeds, asks the planner now and then
// for the best plan of the same shape, and adds up what the present plan loses against it. The
// change is due when the loss has reached its price (balance/ski_rental.hpp). Every rank has one,
// all are fed with the same numbers, and so all have the same answers.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/run_event.hpp"
#include "hetero/balance/balancer.hpp"
#include "hetero/balance/ski_rental.hpp"
#include "hetero/planner/planner.hpp"

namespace t3d {

class Replanner {
 public:
  /// `request`: shape, recipe and tolerance of the run; replicas and cuboids are set. `known`:
  /// speeds measured at the start, for the links; its curves are replaced by what the steps say.
  Replanner(const BalanceOptions& options, PlanRequest request, Speeds known, RankFacts facts);

  /// After a step with `plan` in force. `price_seconds`: of a change that moves state. The plan of
  /// the steps to come, or nothing: it stays.
  [[nodiscard]] std::optional<Plan> observe(const StepReport& report, const Plan& plan,
                                            double price_seconds);
  /// One line: why the last plan was proposed.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  /// The plan has changed, whoever asked for it.
  void restart();
  /// Medians of what the steps measured since then, as speeds.
  [[nodiscard]] Speeds measured(const Plan& plan) const;

 private:
  void look(const Plan& plan);

  BalanceOptions options_;
  PlanRequest request_;
  Speeds known_;
  RankFacts facts_;
  std::vector<std::vector<RankTimes>> looks_;  // the last ones, by step, then world rank
  index_t since_look_ = 0;
  SkiRental rental_;
  std::optional<Plan> better_;
  double loss_seconds_ = 0;  // of a step, against better_
  std::string reason_;
};

}  // namespace t3d
