#include "app/commands/continuation.hpp"

#include "app/commands/replan.hpp"
#include "app/commands/setup.hpp"
#include "comm/agree.hpp"
#include "train/step/reshape.hpp"

namespace t3d {

Continuation::Continuation(Communicator& world, const Config& config, const Origins& origins)
    : world_(world), config_(config), origins_(origins) {
  const std::string& wish = config_.checkpoint.restart;
  if (wish == "auto")
    info_ = find_checkpoint(world_, config_.checkpoint.dir, [](const std::string&) {});
  else if (wish != "never")
    info_ = open_checkpoint(world_, wish);
  if (info_) all_or_none(world_, [&] { check_same_model(); });
}

// Of a checkpoint's input, the model and the seed must stay; the rest may change and is said.
void Continuation::check_same_model() {
  const auto input = info_->state.texts.find("input");
  if (input == info_->state.texts.end()) return;
  const Config before = parse_config(input->second, info_->path + " (input)");
  std::string changed;
  for (const std::string& difference : config_differences(before, config_)) {
    const bool fixed = difference.starts_with("model.") || difference.starts_with("run.seed");
    const bool harmless = difference.starts_with("model.preset");
    if (fixed && !harmless) changed += "\n  " + difference;
  }
  if (!changed.empty())
    throw_error(ExitCode::config,
                "{} is of another model; continue it with its own input, or start anew with "
                "-r never or another -d{}",
                info_->path, changed);
}

Plan Continuation::make_plan(const PlanFacts& facts, std::vector<std::string>& differences) {
  if (info_) before_ = before(facts);
  if (!before_) return t3d::make_plan(config_, facts);
  const auto& texts = info_->state.texts;
  const auto made_from = texts.find(kPlanInputText);
  const std::string& input = (made_from != texts.end() ? made_from : texts.find("input"))->second;
  Plan plan = continued_plan(config_, origins_, facts, before_->plan,
                             parse_config(input, info_->path + " (input of the plan)"));
  differences = plan_differences(before_->plan, plan);
  if (differences.empty()) plan_input_ = input;
  return plan;
}

// Checkpoints of earlier versions hold no plan: it is made again, for the ranks that there are now.
std::optional<Continuation::Before> Continuation::before(const PlanFacts& facts) const {
  const auto& texts = info_->state.texts;
  const auto input = texts.find("input"), plan = texts.find("plan");
  if (input == texts.end()) return std::nullopt;
  Before result{parse_config(input->second, info_->path + " (input)"), {}};
  if (plan != texts.end()) {
    result.plan = parse_plan(plan->second, info_->path + " (plan)");
    return result;
  }
  Config pinned = config_;
  if (!origins_.contains("aggregate.reference_batch"))
    pinned.aggregate.reference_batch = result.config.aggregate.reference_batch;
  if (!origins_.contains("aggregate.leaves"))
    pinned.aggregate.leaves = result.config.aggregate.leaves;
  result.plan = t3d::make_plan(pinned, facts);
  result.plan.aggregate.method = result.config.aggregate.method;
  result.plan.aggregate.placement = result.config.aggregate.placement;
  result.plan.optimizer = result.config.optimizer.kind;
  return result;
}

void Continuation::load(Trainer& trainer, const std::function<void(const std::string&)>& warn) {
  std::vector<TensorPart> parts = trainer.parts();
  const bool lacking = before_ && drop_lacking(parts, trainer.plan());
  if (before_) {
    const index_t leaves = std::ssize(before_->plan.replicas) * before_->plan.leaves_per_replica();
    for (TensorPart& part : parts) part.name = leaf_source(part.name, leaves);
  }
  read(parts, warn);
  const index_t sequences = before_ ? before_->config.batch.sequences : config_.batch.sequences;
  trainer.restore(info_->state.step, info_->state.texts, sequences);
  if (!lacking) return;
  trainer.forget_updates();
  warn(
      "the optimizer's state starts at 0: aggregate.method or placement is another one than in "
      "the checkpoint, which holds other state");
}

void Continuation::read(std::vector<TensorPart>& parts,
                        const std::function<void(const std::string&)>& warn) {
  try {
    if (config_.checkpoint.restart != "auto") {
      load_checkpoint(world_, info_->path, parts, Trainer::kPrivateState);
      return;
    }
    // A checkpoint that turns out damaged is passed over.
    auto loaded = load_newest(world_, config_.checkpoint.dir, parts, warn, Trainer::kPrivateState);
    if (loaded) info_ = std::move(*loaded);
  } catch (const AgreedError& error) {
    // Another optimizer has other state: the checkpoint lacks what it needs.
    const OptimizerKind now = config_.optimizer.kind;
    if (error.code() != ExitCode::config || !before_ || before_->config.optimizer.kind == now)
      throw;
    const OptimizerKind then = before_->config.optimizer.kind;
    throw AgreedError(
        ExitCode::config,
        fmt::format("{}: the optimizer changed, optimizer.kind was {} and is {}. Continue with {}, "
                    "or start anew with -r never or another -d",
                    error.what(), then, now, then));
  }
}

/// Leaves out the optimizer state that the checkpoint cannot have; true where there is such.
bool Continuation::drop_lacking(std::vector<TensorPart>& parts, const Plan& plan) const {
  const bool lacking =
      before_->plan.optimizer == plan.optimizer && !keeps_same_state(before_->plan, plan);
  if (lacking)
    std::erase_if(parts, [](const TensorPart& part) {
      return part.name.starts_with("optimizer/") || part.name.starts_with("aggregate/leaf-");
    });
  return lacking;
}

}  // namespace t3d
