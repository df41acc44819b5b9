// The main job: train from an input file, from the newest checkpoint on, until the steps are done
// or somebody asks to stop. Policy only; the arithmetic is in train/.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "app/commands/commands.hpp"
#include "app/commands/job_report.hpp"
#include "app/commands/rank_plan.hpp"
#include "app/commands/replan.hpp"
#include "app/commands/setup.hpp"
#include "app/commands/tokenizer_check.hpp"
#include "app/config/config_schema.hpp"
#include "app/config/defaults.hpp"
#include "app/stop_signal.hpp"
#include "comm/agree.hpp"
#include "data/corpus_agreement.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/log/run_log.hpp"
#include "io/posix_file.hpp"
#include "train/step/reshape.hpp"
#include "train/step/trainer.hpp"

namespace t3d {
namespace {

class TrainJob {
 public:
  TrainJob(Communicator& world, const CommandLine& command) : world_(world), command_(command) {}

  int run() {
    prepare();
    restart();
    report_->open(*trainer_);
    loop();
    return finish();
  }

 private:
  void prepare() {
    config_ = load_input(world_, command_.input, command_.overrides, world_.size(), origins_);
    world_.set_watchdog(config_.debug.watchdog_seconds);
    world_.set_wait_limit(kCheckpointAxis, config_.debug.io_seconds);
    all_or_none(world_, [&] {
      source_ = open_corpus(config_.data.train, config_, config_.data.shuffle);
      // Validation reads its text in order: the same samples at every evaluation.
      if (!config_.data.valid.empty()) valid_ = open_corpus(config_.data.valid, config_, false);
    });
    agree_on_corpus(world_, source_->tokens(), "data.train");
    if (valid_) agree_on_corpus(world_, valid_->tokens(), "data.valid");
    all_or_none(world_, [&] {
      if (world_.rank() == 0) prepare_folder();
    });
    machine_ = std::make_unique<Machine>(world_, machine_options(config_));
  }

  // A GPU's memory has no swap: refused with the arithmetic now rather than in the middle of a
  // step.
  void check_memory(const Plan& plan) const {
    const auto rank = plan.active_rank(world_.rank());
    if (machine_->choice().gpu < 0 || !rank) return;
    const std::string shortage =
        memory_shortage(simulate_rank(plan, config_.optimizer, *rank), machine_->device(),
                        machine_->choice().sharers);
    if (!shortage.empty())
      throw_error(ExitCode::unavailable, "too little GPU memory: {}", shortage);
  }

  // Fails now rather than after hours if nothing can be written.
  void prepare_folder() {
    std::error_code error;
    std::filesystem::create_directories(config_.checkpoint.dir, error);
    if (error)
      throw_error(ExitCode::io, "cannot create {}: {}", config_.checkpoint.dir, error.message());
  }

  // Only a run that starts anew keeps its tokenizer: whatever continues has it.
  void check_tokenizer(const std::optional<CheckpointInfo>& info) {
    tokenizer_ = check_tokenizers(config_.data, source_->tokens(),
                                  valid_ ? &valid_->tokens() : nullptr, info ? &*info : nullptr);
    if (info || world_.rank() != 0 || tokenizer_.model.empty()) return;
    make_folder(config_.run.dir);
    write_text_durably(tokenizer_file(config_.run.dir), tokenizer_.model);
  }

  void restart() {
    std::vector<std::string> notes;
    const auto warn = [&](const std::string& text) { notes.push_back(text); };
    std::optional<CheckpointInfo> info = checkpoint_to_continue();
    make_trainer(info ? &*info : nullptr);
    if (info) load_state(*info, warn);
    run_id_ = info ? info->state.run_id : new_run_id();
    all_or_none(world_, [&] { check_tokenizer(info); });
    last_saved_ = info ? info->state.step : -1;
    all_or_none(world_, [&] {
      report_ = std::make_unique<JobReport>(*machine_, config_, trainer_->progress().steps,
                                            command_.verbosity < 0);
      report_->write_resolved(resolved_text(config_, origins_));
      keep_plan();
    });
    for (const std::string& text : notes) report_->warn(text);
    for (const std::string& text : tokenizer_.notes) report_->note(text);
    if (info)
      report_->note(fmt::format("resumed from {} at step {}", info->path, info->state.step));
    for (const std::string& text : plan_notes_) report_->note(text);
    if (const std::string text = placement_warning(world_); !text.empty()) report_->warn(text);
  }

  // The header only: the plan of the run decides which boxes are read.
  [[nodiscard]] std::optional<CheckpointInfo> checkpoint_to_continue() const {
    const std::string& wish = config_.checkpoint.restart;
    std::optional<CheckpointInfo> info;
    if (wish == "auto")
      info = find_checkpoint(world_, config_.checkpoint.dir, [](const std::string&) {});
    else if (wish != "never")
      info = open_checkpoint(world_, wish);
    if (info) all_or_none(world_, [&] { check_same_model(*info); });
    return info;
  }

  void make_trainer(const CheckpointInfo* info) {
    all_or_none(world_, [&] {
      const PlanFacts facts = plan_facts(*machine_);
      if (info != nullptr) before_ = plan_before(*info, facts);
      plan_ = before_ ? continued_plan(config_, origins_, facts, before_->plan, before_->config)
                      : make_plan(config_, facts);
      check_memory(plan_);
      for (const std::string& wish : config_.debug.replan)
        replans_.push_back(parse_replan(wish, plan_));
    });
    if (before_)
      for (const std::string& text : plan_differences(before_->plan, plan_))
        plan_notes_.push_back("plan: " + text);
    trainer_ = std::make_unique<Trainer>(*machine_, plan_, train_options(config_), source_);
  }

  /// The plan of a checkpoint, and its input. Checkpoints of earlier versions hold no plan: it is made
  /// again, for the ranks that there are now.
  struct Before {
    Config config;
    Plan plan;
  };
  [[nodiscard]] std::optional<Before> plan_before(const CheckpointInfo& info,
                                                  const PlanFacts& facts) const {
    const auto input = info.state.texts.find("input"), plan = info.state.texts.find("plan");
    if (input == info.state.texts.end()) return std::nullopt;
    Before before{parse_config(input->second, info.path + " (input)"), {}};
    if (plan != info.state.texts.end()) {
      before.plan = parse_plan(plan->second, info.path + " (plan)");
      return before;
    }
    Config pinned = config_;
    if (!origins_.contains("aggregate.reference_batch"))
      pinned.aggregate.reference_batch = before.config.aggregate.reference_batch;
    if (!origins_.contains("aggregate.leaves"))
      pinned.aggregate.leaves = before.config.aggregate.leaves;
    before.plan = make_plan(pinned, facts);
    before.plan.aggregate.method = before.config.aggregate.method;
    before.plan.aggregate.placement = before.config.aggregate.placement;
    before.plan.optimizer = before.config.optimizer.kind;
    return before;
  }

  void load_state(CheckpointInfo& info, const std::function<void(const std::string&)>& warn) {
    std::vector<TensorPart> parts = trainer_->parts();
    const bool lacking = before_ && drop_lacking(parts);
    if (before_) {
      const Plan& plan = before_->plan;
      for (TensorPart& part : parts)
        part.name =
            leaf_source(part.name, std::ssize(plan.replicas) * plan.leaves_per_replica());
    }
    if (config_.checkpoint.restart == "auto") {
      // A checkpoint that turns out damaged is passed over.
      if (auto loaded = load_newest(world_, config_.checkpoint.dir, parts, warn,
                                    Trainer::kPrivateState))
        info = std::move(*loaded);
    } else {
      load_checkpoint(world_, info.path, parts, Trainer::kPrivateState);
    }
    const index_t sequences = before_ ? before_->config.batch.sequences : config_.batch.sequences;
    trainer_->restore(info.state.step, info.state.texts, sequences);
    if (!lacking) return;
    trainer_->forget_updates();
    warn("the optimizer's state starts at 0: aggregate.method or placement is another one than in "
         "the checkpoint, which holds other state");
  }

  /// Leaves out the optimizer state that the checkpoint cannot have; true where there is such.
  bool drop_lacking(std::vector<TensorPart>& parts) const {
    const bool lacking =
        before_->plan.optimizer == plan_.optimizer && !keeps_same_state(before_->plan, plan_);
    if (lacking)
      std::erase_if(parts, [](const TensorPart& part) {
        return part.name.starts_with("optimizer/") || part.name.starts_with("aggregate/leaf-");
      });
    return lacking;
  }

  void keep_plan() const {
    if (world_.rank() != 0) return;
    write_text_durably(config_.run.dir + "/plan.toml", trainer_->plan().text());
  }

  // Of a checkpoint's input, the model and the seed must stay; the rest may change and is said.
  void check_same_model(const CheckpointInfo& info) const {
    const auto input = info.state.texts.find("input");
    if (input == info.state.texts.end()) return;
    const Config before = parse_config(input->second, info.path + " (input)");
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
                  info.path, changed);
  }

  [[nodiscard]] std::string new_run_id() const {
    const auto now = static_cast<std::uint64_t>(std::time(nullptr));
    return broadcast_text(world_, fmt::format("{}-{:x}", config_.run.name, now));
  }

  void loop() {
    last_save_time_ = PhaseClock::now();
    while (!trainer_->ended() && !decision_.stop) {
      trainer_->start_step(wishes());
      report_->expect(trainer_->predicted_step());
      const index_t done = trainer_->progress().steps;
      if (steps_run_++ == 0) keep_choices();
      const bool save_now = due_at(done) || trainer_->ended();
      const bool wait = save_now || evaluates_after(done) || replan_after(done) != nullptr;
      // A GPU works on this step while the report of the one before is read.
      take_reports(machine_->runs_ahead() && !wait ? 1 : 0);
      if (decision_.stop || decision_.checkpoint) take_reports(0);
      if (const Replan* replan = replan_after(done)) reshape(replan->plan);
      if (!save_now && !decision_.stop && !decision_.checkpoint) continue;
      save();
      decision_.checkpoint = false;
      last_save_time_ = PhaseClock::now();
    }
    stopped_ = decision_.stop && !trainer_->ended();
  }

  // What this rank would like after the next step. The clock of rank 0 decides for all.
  [[nodiscard]] unsigned wishes() const {
    const double minutes = config_.checkpoint.every_minutes;
    const bool due = world_.rank() == 0 && minutes > 0 &&
                     PhaseClock::now() - last_save_time_ >= 60 * minutes;
    return (stop_signal() != 0 ? kStopAsked : kNoFlag) | (due ? kCheckpointDue : kNoFlag);
  }

  [[nodiscard]] bool due_at(index_t step) const {
    return config_.checkpoint.every_steps > 0 && step % config_.checkpoint.every_steps == 0;
  }

  [[nodiscard]] const Replan* replan_after(index_t step) const {
    for (const Replan& replan : replans_)
      if (replan.step == step && !trainer_->ended()) return &replan;
    return nullptr;
  }

  void reshape(const Plan& plan) {
    const std::string before = trainer_->plan().mesh().describe();
    const ReshapeReport done = trainer_->reshape(plan);
    report_->expect(done.predicted);
    all_or_none(world_, [&] { keep_plan(); });
    report_->reshaped(done.seconds, before, trainer_->plan());
    for (const std::string& name : done.reset)
      report_->warn(fmt::format("{} starts at 0 under the new plan", name));
  }

  // The first step has chosen the engines of a GPU.
  void keep_choices() {
    for (const std::string& text : machine_->ops().notes()) report_->warn(text);
    if (machine_->ops().choices().empty()) return;
    const std::string path = machine_->choices_file();
    try {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      machine_->ops().save_choices(path);
    } catch (const std::exception& error) {
      report_->warn(fmt::format("engine choices are not kept: {}", error.what()));
    }
  }

  [[nodiscard]] bool evaluates_after(index_t step) const {
    const bool last = step == trainer_->progress().steps && trainer_->ended();
    return valid_ != nullptr && (last || (config_.eval.every_steps > 0 &&
                                          step % config_.eval.every_steps == 0));
  }

  // Reads and writes down what has been done, until at most `left` steps await their report.
  void take_reports(index_t left) {
    while (trainer_->pending() > left) {
      const StepReport step = trainer_->finish_step();
      std::optional<double> valid;
      if (evaluates_after(step.step))
        valid = evaluate(trainer_->ended() && step.step == trainer_->progress().steps);
      report_->step(*trainer_, step, valid);
      if (valid) report_valid(*valid);
      const Decision now = decide(step.flags);
      decision_.stop = decision_.stop || now.stop;
      decision_.checkpoint = decision_.checkpoint || now.checkpoint;
    }
  }

  double evaluate(bool whole) {
    const index_t available = valid_->ledger().samples();
    index_t sequences = config_.eval.batches * trainer_->plan().sequences();
    sequences = whole ? available : std::min(sequences, available);
    report_->expect(trainer_->predicted_evaluation(sequences));
    return trainer_->evaluate(*valid_, sequences);
  }

  void report_valid(double loss) {
    const double bytes = tokenizer_.scores_valid ? valid_->tokens().bytes_per_token() : 0;
    std::string text =
        fmt::format("validation loss {:.4f}  perplexity {:.2f}", loss, std::exp(loss));
    if (bytes > 0) text += fmt::format("  bits per byte {:.4f}", loss / std::log(2.0) / bytes);
    report_->note(text);
  }

  // A checkpoint that cannot be written costs a warning, not the run; at the end it costs the exit
  // code.
  void save() {
    if (last_saved_ == trainer_->progress().steps) return;
    const PhaseClock::Scope scope(machine_->clock(), "checkpoint");
    CheckpointOptions options{config_.checkpoint.dir, config_.checkpoint.ranks_per_file,
                              config_.checkpoint.keep, config_.checkpoint.major_every,
                              config_.checkpoint.verify};
    CheckpointState state;
    state.step = trainer_->progress().steps;
    state.run_id = run_id_;
    state.texts = trainer_->texts();
    state.texts["input"] = resolved_text(config_);
    if (tokenizer_.hash != 0) state.texts[kTokenizerText] = tokenizer_text(tokenizer_.hash);
    const double start = PhaseClock::now();
    try {
      const std::string path =
          save_checkpoint(world_, options, state, trainer_->parts_to_save(), true);
      report_->note(fmt::format("checkpoint {} in {:.2f} s", path, PhaseClock::now() - start));
      last_saved_ = state.step;
    } catch (const AgreedError& error) {
      report_->warn(fmt::format("no checkpoint of step {}: {}", state.step, error.what()));
    }
  }

  int finish() {
    const std::string reason = stopped_ ? "asked to stop by a signal" : "all steps done";
    report_->finish(reason);
    if (last_saved_ != trainer_->progress().steps)
      throw AgreedError(ExitCode::io,
                        "the last checkpoint could not be written; see the warnings above");
    return static_cast<int>(stopped_ ? ExitCode::retry : ExitCode::done);
  }

  Communicator& world_;
  const CommandLine& command_;
  Origins origins_;
  Config config_;
  index_t last_saved_ = -1;
  Decision decision_;     // of the steps whose reports have been read
  bool stopped_ = false;  // it came to a stop before the end
  double last_save_time_ = 0;
  index_t steps_run_ = 0;  // by this process
  std::string run_id_;
  std::optional<Before> before_;
  Plan plan_;
  std::vector<std::string> plan_notes_;
  std::vector<Replan> replans_;
  std::shared_ptr<BatchSource> source_, valid_;
  RunTokenizer tokenizer_;
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<JobReport> report_;
};

}  // namespace

int run_training(Communicator& world, const CommandLine& command) {
  catch_stop_signals();
  return TrainJob(world, command).run();
}

}  // namespace t3d
