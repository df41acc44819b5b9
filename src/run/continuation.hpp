// What a run continues from: a checkpoint, with the input and the plan under which it was written.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config_schema.hpp"
#include "config/make_plan.hpp"
#include "hetero/speed/speeds.hpp"
#include "io/checkpoint/checkpoint.hpp"
#include "run/plan_basis.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

/// Name of the checkpoint's text with the input from which its plan was made.
inline constexpr const char* kPlanInputText = "plan_input";

/// Name of the checkpoint's text with the speeds from which it was made (hetero/speed/speeds.hpp).
inline constexpr const char* kSpeedsText = "speeds";

/// Name of the checkpoint's text with what its plan rests on beside that (plan_basis.hpp).
inline constexpr const char* kBasisText = "plan_basis";

class Continuation {
 public:
  /// From `info`, or from nothing. Refuses the checkpoint of another model. Collective.
  Continuation(Communicator& world, const Config& config, const Origins& origins,
               std::optional<CheckpointInfo> info);

  /// The checkpoint, where there is one.
  [[nodiscard]] const std::optional<CheckpointInfo>& info() const { return info_; }

  /// Gives the keys of `config` that nobody wrote the values of the checkpoint's plan.
  void adopt(Config& config) const;

  /// The plan to train under: the checkpoint's, as far as neither the input nor the ranks ask for
  /// another; without a checkpoint the input's.
  [[nodiscard]] Plan make_plan(const PlanFacts& facts);

  /// What is another thing than when the checkpoint was written, a line each: ranks, nodes and
  /// shape together in the first one, then other fields of the plan. `plan`: of this life.
  [[nodiscard]] std::vector<std::string> changes(const Plan& plan, const PlanBasis& now) const;

  /// What a later step's learning rate follows from is another thing than in the checkpoint's
  /// input; one sentence, empty where it is not, or not known.
  [[nodiscard]] std::string changed_schedule() const;

  /// The plan that make_plan() gave is the checkpoint's.
  [[nodiscard]] bool keeps_plan() const { return keeps_plan_; }

  /// Why the plan that is kept is not one for the ranks that there are now, in a few words; empty
  /// where it is one. `rooms`: bytes of memory by rank, 0 = not known.
  [[nodiscard]] std::string outdated(const PlanBasis& now, std::span<const index_t> rooms) const;

  /// From here on the plan is not kept: the input to make another one from. With adasum the number
  /// of replicas stays, as it belongs to the mathematics.
  [[nodiscard]] Config drop_plan();

  /// The input from which the plan was made: its keys, not those of a run that only kept the plan,
  /// say what a later input changes. Empty without a checkpoint.
  [[nodiscard]] const std::string& plan_input() const { return plan_input_; }

  /// The speeds that the checkpoint's plan was made from, where they are of as many ranks.
  [[nodiscard]] std::optional<Speeds> speeds(index_t ranks) const;

  /// The matmul rate that the checkpoint knows of these ranks, if any.
  [[nodiscard]] MatmulRate matmul_rate(const PlanBasis& now) const;

  /// What the checkpoint has of the trainer's state, under the names that it has there.
  [[nodiscard]] std::vector<TensorPart> parts(Trainer& trainer);

  /// Once these parts are filled. `warn` hears what could not be taken over. Collective.
  void restore(Trainer& trainer, const Warn& warn) const;

 private:
  struct Before {
    Config config;
    Plan plan;
    index_t leaves = 0;  // of all replicas
  };
  void check_same_model() const;
  void check_optimizer() const;
  [[nodiscard]] PlanBasis basis_before() const;
  [[nodiscard]] std::string changed_gradients(const Plan& plan) const;
  [[nodiscard]] const std::string& input_before() const;
  [[nodiscard]] std::optional<Before> before(const PlanFacts& facts) const;

  const Config& config_;
  const Origins& origins_;
  int ranks_;
  std::optional<CheckpointInfo> info_;
  std::optional<Before> before_;
  std::string plan_input_;
  bool keeps_plan_ = false;
  std::span<double> noise_;  // of the trainer, where it goes on from the checkpoint's
};

}  // namespace t3d
