#include "run/continuation.hpp"

#include <utility>

#include "comm/agree.hpp"
#include "config/defaults.hpp"
#include "run/setup.hpp"
#include "train/step/reshape.hpp"

namespace t3d {
Continuation::Continuation(Communicator& world, const Config& config, const Origins& origins,
                           std::optional<CheckpointInfo> info)
    : config_(config), origins_(origins), ranks_(world.size()), info_(std::move(info)) {
  if (info_) all_or_none(world, [&] { check_same_model(); });
}

namespace {

/// Of the whole run, where steps or tokens alone say it; else 0.
double length_in_tokens(const Config& config) {
  const RunOptions& run = config.run;
  if (run.steps > 0 && run.tokens > 0) return 0;
  if (run.tokens > 0) return run.tokens;
  return static_cast<double>(run.steps) *
         static_cast<double>(config.batch.sequences * config.model.context);
}

}  // namespace

std::string Continuation::changed_schedule() const {
  if (!info_ || !info_->state.texts.contains("input")) return {};
  const Config before = parse_config(info_->state.texts.at("input"), info_->path + " (input)");
  const bool constant = before.schedule.kind == config_.schedule.kind &&
                        config_.schedule.kind == ScheduleKind::constant;
  // plan --elastic says in tokens what was said in steps: the rate follows the same course.
  const double was = length_in_tokens(before), is = length_in_tokens(config_);
  const bool same_length = is > 0 && was == is;
  std::string changed;
  for (const std::string& difference : config_differences(before, config_)) {
    const bool length = difference.starts_with("run.steps") || difference.starts_with("run.tokens");
    const bool rate = difference.starts_with("schedule.") || difference.starts_with("optimizer.lr");
    if (rate || (length && !constant && !same_length))
      changed += (changed.empty() ? "" : "; ") + difference;
  }
  if (changed.empty()) return {};
  return fmt::format(
      "the learning rate follows another schedule than before step {}, and may jump there ({}). To "
      "train a part of a run, leave run.steps as it is and set run.pause_at",
      info_->state.step, changed);
}

// Of a checkpoint's input, the model and the seed must stay; the rest may change and is said.
void Continuation::check_same_model() const {
  if (info_->state.texts.contains(kWeightsOnlyText))
    throw_error(ExitCode::config,
                "{} holds weights alone, no run that could be continued; begin one from it with "
                "init.from = \"{}\"",
                info_->path, info_->path);
  const auto input = info_->state.texts.find("input");
  if (input == info_->state.texts.end()) return;
  const Config before = parse_config(input->second, info_->path + " (input)");
  std::string changed;
  bool same_model = true;
  for (const std::string& difference : config_differences(before, config_)) {
    const bool seed = difference.starts_with("run.seed");
    const bool model = (difference.starts_with("model.") || difference.starts_with("lora.")) &&
                       !difference.starts_with("model.preset");
    if (!seed && !model) continue;
    changed += "\n  " + difference;
    same_model = same_model && !model;
  }
  if (!changed.empty())
    throw_error(
        ExitCode::config,
        "{} is of another {}; continue it with its own input, or start from the beginning with "
        "-r never or another -d{}",
        info_->path, same_model ? "run.seed" : "model", changed);
}

// The machine and the optimizer are made from the input, and must be what the plan says.
void Continuation::adopt(Config& config) const {
  if (!info_) return;
  const auto& texts = info_->state.texts;
  const auto text = texts.find("plan");
  if (text == texts.end() || !texts.contains("input")) return;
  keep_values(config, origins_, ranks_, parse_plan(text->second, info_->path + " (plan)"),
              parse_config(input_before(), info_->path + " (input of the plan)"));
}

// The input from which the checkpoint's plan was made.
const std::string& Continuation::input_before() const {
  const auto& texts = info_->state.texts;
  const auto made_from = texts.find(kPlanInputText);
  return (made_from != texts.end() ? made_from : texts.find("input"))->second;
}

Plan Continuation::make_plan(const PlanFacts& facts) {
  if (info_) before_ = before(facts);
  if (!before_) return t3d::make_plan(config_, facts);
  check_optimizer();
  const std::string& input = input_before();
  Plan plan = continued_plan(config_, origins_, facts, before_->plan,
                             parse_config(input, info_->path + " (input of the plan)"));
  Plan kept = before_->plan;
  kept.transport = plan.transport;
  keeps_plan_ = kept == plan;
  if (keeps_plan_) {
    plan_input_ = input;
  } else {  // with what it took over
    Config made = config_;
    made.aggregate = plan.aggregate;
    plan_input_ = resolved_text(made, origins_);
  }
  return plan;
}

std::vector<std::string> Continuation::changes(const Plan& plan, const PlanBasis& now) const {
  if (!before_) return {};
  std::vector<std::string> lines = plan_differences(before_->plan, plan);
  const std::string shape = changed_shape({before_->plan, basis_before()}, {plan, now});
  if (shape.empty()) return lines;
  // The cuts of another shape are other ones; plan.toml has them.
  std::erase_if(lines, [](const std::string& line) {
    return line.starts_with("ranks:") || line.starts_with("replica");
  });
  lines.insert(lines.begin(), shape);
  return lines;
}

std::string Continuation::outdated(const PlanBasis& now, std::span<const index_t> rooms) const {
  if (!keeps_plan_ || ranks_ == 1) return {};
  std::string why = changed_ranks(basis_before(), now);
  if (why.empty())
    why = changed_speeds(parse_config(plan_input_, info_->path + " (input of the plan)"), config_,
                         origins_);
  return why.empty() ? lacking_memory(before_->plan, now, rooms) : why;
}

// Empty in checkpoints of earlier versions.
PlanBasis Continuation::basis_before() const {
  const auto text = info_->state.texts.find(kBasisText);
  if (text == info_->state.texts.end()) return {};
  return parse_plan_basis(text->second, info_->path + " (plan_basis)");
}

MatmulRate Continuation::matmul_rate(const PlanBasis& now) const {
  return info_ ? known_matmul_rate(basis_before(), now) : MatmulRate{};
}

Config Continuation::drop_plan() {
  keeps_plan_ = false;
  plan_input_ = resolved_text(config_, origins_);
  Config input = config_;
  if (input.mesh.replicas_auto && input.aggregate.method == AggregateMethod::adasum) {
    input.mesh.replicas_auto = false;
    input.mesh.replicas = std::ssize(before_->plan.replicas);
  }
  check_against_ranks(input, ranks_, origins_);
  return input;
}

std::optional<Speeds> Continuation::speeds(index_t ranks) const {
  if (!info_) return std::nullopt;
  const auto found = info_->state.texts.find(kSpeedsText);
  if (found == info_->state.texts.end()) return std::nullopt;
  Speeds speeds = parse_speeds(found->second, info_->path + " (speeds)");
  if (std::ssize(speeds.ranks) != ranks) return std::nullopt;
  return speeds;
}

// Adasum of another number of gradients is another training. Who wrote the number knows.
std::string Continuation::changed_gradients(const Plan& plan) const {
  const Plan& before = before_->plan;
  const auto count = [](const Plan& p) { return std::ssize(p.replicas) * p.leaves_per_replica(); };
  const bool written = origins_.contains("mesh.replicas") && !config_.mesh.replicas_auto;
  if (written || before.aggregate.method != AggregateMethod::adasum ||
      plan.aggregate.method != AggregateMethod::adasum || count(before) == count(plan))
    return {};
  return fmt::format(
      "aggregate.method = \"adasum\" combines {} gradient{} a step from here on, and combined {}: "
      "the training is not the one that it would have been; mesh.replicas = {} keeps their number",
      count(plan), count(plan) == 1 ? "" : "s", count(before), std::ssize(before.replicas));
}

// Another optimizer has other state.
void Continuation::check_optimizer() const {
  const OptimizerKind then = before_->plan.optimizer, now = config_.optimizer.kind;
  if (then != now)
    throw_error(ExitCode::config,
                "{}: the optimizer changed, optimizer.kind was {} and is {}. Continue with {}, or "
                "start from the beginning with -r never or another -d",
                info_->path, then, now, then);
}

// Checkpoints of earlier versions hold no plan: it is made again, for the ranks that there are now.
std::optional<Continuation::Before> Continuation::before(const PlanFacts& facts) const {
  const auto& texts = info_->state.texts;
  const auto input = texts.find("input"), plan = texts.find("plan");
  if (input == texts.end()) return std::nullopt;
  Before result{parse_config(input->second, info_->path + " (input)"), {}, 0};
  if (plan != texts.end()) {
    result.plan = parse_plan(plan->second, info_->path + " (plan)");
    result.leaves = std::ssize(result.plan.replicas) * result.plan.leaves_per_replica();
    return result;
  }
  Config pinned = config_;
  if (!origins_.contains("aggregate.reference_batch"))
    pinned.aggregate.reference_batch = result.config.aggregate.reference_batch;
  if (!origins_.contains("aggregate.leaves"))
    pinned.aggregate.leaves = result.config.aggregate.leaves;
  // What decides about leaves and state is the checkpoint's, also where the input asks for another.
  pinned.aggregate.method = result.config.aggregate.method;
  pinned.aggregate.placement = result.config.aggregate.placement;
  pinned.optimizer.kind = result.config.optimizer.kind;
  result.plan = t3d::make_plan(pinned, facts);
  result.leaves = result.config.mesh.replicas * result.config.aggregate.leaves;
  return result;
}

std::vector<TensorPart> Continuation::parts(Trainer& trainer) {
  std::vector<TensorPart> parts = trainer.parts();
  if (!before_) return parts;
  const Plan& plan = trainer.plan();
  const bool same_state = keeps_same_state(before_->plan, plan);
  const bool same_noise = keeps_noise(before_->plan, plan);
  std::erase_if(parts, [&](const TensorPart& part) {
    if (part.name == kNoiseState) return !same_noise;
    const bool of_optimizer =
        part.name.starts_with("optimizer/") || part.name.starts_with("aggregate/leaf-");
    return of_optimizer && !same_state;
  });
  for (TensorPart& part : parts) {
    part.name = leaf_source(part.name, before_->leaves);
    if (part.name == kNoiseState)
      noise_ = {static_cast<double*>(part.data), static_cast<std::size_t>(part.rows * part.cols)};
  }
  return parts;
}

void Continuation::restore(Trainer& trainer, const Warn& warn) const {
  if (!info_) return;
  const Plan& plan = trainer.plan();
  if (before_) rescale_noise(noise_, before_->plan, plan);
  const index_t sequences = before_ ? before_->config.batch.sequences : config_.batch.sequences;
  trainer.restore(info_->state.step, info_->state.texts, sequences);
  if (!before_) return;
  if (const std::string text = changed_gradients(plan); !text.empty()) warn(text);
  if (!keeps_same_state(before_->plan, plan)) {
    trainer.forget_updates();
    warn(
        "the optimizer's state starts at 0: aggregate.method or placement is another one than in "
        "the checkpoint, which holds other state");
  }
  if (has_noise(plan) && !keeps_noise(before_->plan, plan))
    warn(fmt::format("{} starts at 0: the plan of the checkpoint has none of this kind",
                     kNoiseState));
}

}  // namespace t3d
