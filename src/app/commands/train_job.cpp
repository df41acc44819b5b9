// The main job: train from an input file, from the newest checkpoint on, until the steps are done
// or somebody asks to stop. Policy only; the arithmetic is in train/. What the steps begin with:
// job_state; how the job ends: job_end.
#include <algorithm>
#include <filesystem>

#include "app/commands/balancing.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/epochs.hpp"
#include "app/commands/evaluation.hpp"
#include "app/commands/init_weights.hpp"
#include "app/commands/job_end.hpp"
#include "app/commands/job_report.hpp"
#include "app/commands/job_state.hpp"
#include "app/commands/last_words.hpp"
#include "app/commands/life.hpp"
#include "app/commands/memory_room.hpp"
#include "app/commands/next_command.hpp"
#include "app/commands/provenance.hpp"
#include "app/commands/saving.hpp"
#include "app/commands/setup.hpp"
#include "app/commands/start_clock.hpp"
#include "app/commands/stopping.hpp"
#include "app/commands/texts.hpp"
#include "app/config/defaults.hpp"
#include "app/env_seconds.hpp"
#include "app/stop_signal.hpp"
#include "comm/agree.hpp"
#include "comm/busy.hpp"
#include "comm/peers/peer_watch.hpp"
#include "comm/placement.hpp"
#include "core/counted.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/shared_folder.hpp"
#include "io/checkpoint/state_digest.hpp"
#include "io/lock/run_lock.hpp"
#include "io/read_patience.hpp"
#include "train/step/trainer.hpp"

namespace t3d {
namespace {

constexpr const char* kInEvaluation = ": all steps are done, the last validation is not";

// On rank 0. Asked to stop while an owner without a sign of life is waited for: stops.
std::unique_ptr<RunLock> lock_folders(const std::vector<std::string>& folders,
                                      const std::string& run) {
  double last_word = PhaseClock::now();
  return std::make_unique<RunLock>(folders, run, [&](const std::string& text) {
    if (stop_signal() != 0)
      throw_error(ExitCode::retry, "asked to stop by a signal while waiting: {}", text);
    if (PhaseClock::now() - last_word < 5) return;
    last_word = PhaseClock::now();
    fmt::print(stderr, "transformer3d: waiting: {}\n", text);
  });
}

/// A file server that restarts needs a minute.
ReadPatience::Rule patience_of_start() {
  constexpr double kSeconds = 60;
  return {env_seconds("T3D_RETRY_SECONDS", kSeconds), [] { return stop_signal() != 0; },
          [](const std::string& text) { fmt::print(stderr, "transformer3d: {}\n", text); }};
}

class TrainJob {
 public:
  TrainJob(Communicator& world, const CommandLine& command)
      : world_(world), command_(command), last_words_(world.rank()) {}

  int run() {
    prepare();
    start_clock_.mark("input and data");
    start();
    start_clock_.mark("state");
    make_evaluation();
    if (trainer_->ended()) return nothing_left();
    if (paused()) return wait_for_next();
    stop_if_asked(began_at_);
    report_->open(*trainer_, state_.measure_matmul_rate());
    tell_epochs();
    predict_steps();
    start_clock_.mark("matmul rate");
    make_balancing();
    make_saving();
    stop_if_asked(began_at_);
    begin_provenance();
    report_->begin_steps();
    provenance_->begin_steps();
    try {
      loop();
    } catch (const AgreedError&) {
      end_saving();
      throw;
    }
    return finish();
  }

  void make_balancing() {
    std::optional<Balancing::Replanning> replanning = state_.replanning();
    const BalanceOptions options = balance_options(config_, origins_);
    if (options.kind != config_.balance.kind)
      report_->note(
          "the batch stays divided as it is written; with balance.kind written, it is balanced");
    balancing_ = std::make_unique<Balancing>(world_, options, config_.batch.micro,
                                             state_.planned().room, machine_->choice().gpu >= 0,
                                             state_.planned().speeds, std::move(replanning));
  }

  /// An error that only this rank knows of ends it: the others are not to wait for it.
  void end_alone(const std::string& cause) {
    if (watch_) watch_->end_with(cause);
  }

  /// Collective, as `code` is the end of all. What no rank could read for a while may be readable
  /// later: the job is to be started again.
  void look_whether_it_passes(ExitCode code) {
    if (code != ExitCode::io) return;
    std::int32_t ran_out = patience_.ran_out() ? 1 : 0;
    world_.all_reduce({&ran_out, DType::i32, 1, 1}, ReduceOp::max).wait_host();
    if (ran_out != 0) end_.fault_may_pass();
  }

  /// An end that only this rank knows of; on rank 0 also one that all have come to.
  void record_end(ExitCode code, const std::string& reason) {
    if (report_) report_->settle_files(FileService::kLastSeconds);  // the last file is exit.json
    end_.record(code, reason, {began_at_, steps_run_, state_.steps_done(), last_saved()});
  }

  [[nodiscard]] const std::function<void()>& last_act() const { return end_.last_act(); }

 private:
  void prepare() {
    begin_watching();
    const std::optional<AgreedError> unread = read_texts();
    const std::vector<int> nodes = node_of_ranks(world_);
    // Another job's lock may have to be waited for: the limit is that of files.
    all_or_none(*checkpoint_group(world_), [&] {
      if (world_.rank() == 0) prepare_folder(1 + *std::max_element(nodes.begin(), nodes.end()));
    });
    const std::string token = broadcast_text(world_, lock_ ? lock_->lease().token : "");
    const Epoch epoch = epoch_of_lock(token);
    end_.set_folder(lock_.get(), epoch);
    if (broadcast_text(world_, life_.goes_on_in_job() ? "auto" : "") == "auto") {
      early_notes_.push_back(fmt::format("-r {} was for the first life of this job; it goes on",
                                         config_.checkpoint.restart));
      config_.checkpoint.restart = "auto";
    }
    check_folders(nodes, token);
    last_words_.set_folder(config_.run.dir, epoch);
    if (unread) throw AgreedError(*unread);
    stopping_ = std::make_unique<Stopping>(config_, world_.rank() == 0);
  }

  void begin_watching() {
    {
      const ReadPatience::Scope patient(patience_);
      config_ = load_input(world_, command_.input, command_.overrides, world_.size(), origins_,
                           DataFiles::read);
    }
    last_words_.set_requeue(config_.run.requeue);
    world_.set_watchdog(config_.debug.watchdog_seconds);
    // The other ranks wait for the one that tries again.
    if (config_.debug.watchdog_seconds > 0) patience_.limit(config_.debug.watchdog_seconds / 2);
    world_.set_wait_limit(kCheckpointAxis, config_.debug.io_seconds);
    set_busy_limit(config_.debug.io_seconds);
    watch_ = std::make_unique<PeerWatch>(
        world_, PeerWatch::Options{config_.debug.lost_seconds,
                                   [this](const PeerLoss& loss) { last_words_.say(loss); },
                                   [this] { last_words_.end(); },
                                   [this](const PeerLoss& loss) { last_words_.hear(loss); }});
  }

  // A fault that may pass is returned: it is told in the run folder, where lives are counted, once
  // that is there.
  std::optional<AgreedError> read_texts() {
    const ReadPatience::Scope patient(patience_);
    try {
      texts_ = open_texts(world_, config_);
      check_first_weights(world_, config_);
    } catch (const AgreedError& error) {
      look_whether_it_passes(error.code());
      if (!end_.may_pass()) throw;
      return error;
    }
    return std::nullopt;
  }

  // Other ranks than 0 write into the run folder too: last words, choices of engines.
  void check_folders(const std::vector<int>& nodes, const std::string& token) {
    const std::string &dir = config_.run.dir, &checkpoints = config_.checkpoint.dir;
    check_shared_folder(world_, nodes, checkpoints, token);
    if (!checkpoints.starts_with(dir + "/")) check_shared_folder(world_, nodes, dir, token);
  }

  // Before the first step nothing was learned that a checkpoint would have to keep, and the one
  // that the run would have continued from stays. Collective: a signal may have reached some ranks
  // only.
  void stop_if_asked(index_t checkpoint) {
    auto asked = static_cast<std::int32_t>(stopping_->stop_wishes());
    world_.all_reduce({&asked, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
    if (asked == 0) return;
    const auto flags = static_cast<unsigned>(asked);
    end_.stopped(flags);
    began_at_ = checkpoint;
    throw AgreedError(ExitCode::retry, Stopping::reason(flags) + " before the first step");
  }

  // Fails now rather than after hours if nothing can be written. Nothing is written before the
  // folders are locked.
  void prepare_folder(index_t nodes) {
    const std::vector<std::string> folders{config_.run.dir, config_.checkpoint.dir};
    for (const std::string& folder : folders) {
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      if (error) throw_error(ExitCode::io, "cannot create {}: {}", folder, error.message());
    }
    lock_ = lock_folders(folders, config_.run.name);
    const ReadPatience::Scope patient(patience_);  // the lock's own files have rules of their own
    for (const std::string& folder : folders) remove_old_checks(folder);
    life_.begin(config_, *lock_, world_.size(), nodes);
  }

  void start() {
    const ReadPatience::Scope patient(patience_);
    const std::vector<std::string> warnings = begin_state();
    const std::optional<CheckpointInfo>& info = state_.checkpoint();
    const Lineage& lineage = state_.lineage();
    if (lock_) lock_->set_run(state_.run_id());
    began_at_ = info ? info->state.step : -1;
    const bool begins = !info || !(info->state.lineage == lineage);
    const LogLineage of_log{lineage.number, begins, lineage.parent_lineage};
    // Rank 0 makes the logs ready, which may be long: the limit is that of files.
    all_or_none(*checkpoint_group(world_), [&] {
      report_ = std::make_unique<JobReport>(*machine_, config_, trainer_->progress().steps, of_log,
                                            command_.quiet);
      keep_records(info.has_value());
      life_.goes_on(info, trainer_->progress().steps, lineage.number);
    });
    report_->banner(*trainer_);
    for (const std::string& text : warnings) report_->warn(text);
    for (const std::string& text : early_notes_) report_->note(text);
    state_.tell_origin(*report_);
    last_words_.set_progress(trainer_->progress().steps, last_saved());
    if (!watch_->gaps().empty())
      report_->warn(watch_->gaps() + ": a rank that is lost may be noticed late");
    state_.tell_plan(*report_, command_.verbose);
    if (const std::string text = placement_warning(world_); !text.empty()) report_->warn(text);
  }

  /// Warnings for the log, which there is not yet.
  std::vector<std::string> begin_state() {
    std::vector<std::string> warnings;
    const auto warn = [&](const std::string& text) { warnings.push_back(text); };
    try {
      state_.begin(warn);
    } catch (...) {
      for (const std::string& text : warnings) fmt::print(stderr, "transformer3d: {}\n", text);
      throw;
    }
    machine_ = &state_.machine();
    trainer_ = &state_.trainer();
    state_.identify(warn);
    return warnings;
  }

  // For readers of the folder: the checkpoints hold the same. A new run that cannot write them has
  // nothing to lose; one that goes on is not to end for them.
  void keep_records(bool goes_on) {
    try {
      report_->write_resolved(resolved_text(config_, origins_));
      state_.keep_plan();
    } catch (const Error& error) {
      if (!goes_on) throw;
      report_->warn(fmt::format("{}: what this file says is of an earlier life", error.what()));
    }
  }

  void tell_epochs() {
    const double samples =
        static_cast<double>(trainer_->steps()) * static_cast<double>(trainer_->plan().sequences());
    const auto context = static_cast<double>(config_.model.context);
    const std::vector<EpochSource> sources = epoch_sources(*texts_.train, config_.data);
    const EpochText epochs = epoch_text(sources, samples * context);
    const auto before = static_cast<double>(trainer_->progress().samples);
    report_->count_epochs({sources, before * context, samples * context});
    for (const std::string& text : epochs.lines) report_->note(text);
    if (!epochs.warning.empty()) report_->warn(epochs.warning);
  }

  // A prediction is no reason to end a run: what it lacks is said, and the run goes on without it.
  void predict_steps() {
    if (config_.hetero.cluster.empty() || world_.rank() != 0) return;
    try {
      const PlanBasis& basis = state_.planned().basis;
      StepPrediction prediction(config_.hetero.cluster, basis.nodes, basis.devices);
      report_->note(fmt::format("a step of this plan should take {:.4g} ms, by {}",
                                1e3 * prediction.seconds(trainer_->plan()),
                                config_.hetero.cluster));
      report_->predict_by(std::move(prediction), state_.run_id());
    } catch (const std::exception& error) {
      report_->warn(fmt::format("no prediction of steps: {}", error.what()));
    }
  }

  void begin_provenance() {
    provenance_ = std::make_unique<Provenance>(
        lock_.get(), config_.run.dir, [this](const std::string& text) { report_->warn(text); },
        [this](const std::string& what, std::function<void()> work) {
          report_->later(what, std::move(work));
        });
    LifeStart start;
    start.life = life_.number();
    start.vendor_peak = report_->peak_rate();
    state_.describe(start);
    provenance_->begin(*machine_, std::move(start), trainer_->predicted_step());
  }

  void loop() {
    last_save_time_ = PhaseClock::now();
    while (!trainer_->ended() && !paused() && decision_.stop == kNoFlag) {
      trainer_->start_step(wishes());
      report_->expect(trainer_->predicted_step());
      const index_t done = trainer_->progress().steps;
      if (steps_run_++ == 0) keep_choices();
      const bool save_now = due_at(done) || trainer_->ended() || paused();
      const Replan* replan = state_.replan_after(done);
      const bool wait = save_now || evaluation_->follows(done) || replan != nullptr ||
                        report_->bounds_trace(done);
      // A GPU works on this step while the report of the one before is read.
      take_reports(machine_->runs_ahead() && !wait ? 1 : 0);
      if (decision_.stop != kNoFlag || decision_.checkpoint || decision_.report) take_reports(0);
      if (std::exchange(decision_.report, false)) report_->interim();
      if (std::exchange(decision_.reshape, false) && replan != nullptr && !trainer_->ended())
        replan_as_asked(replan->plan);
      rebalance();
      if (!save_now && decision_.stop == kNoFlag && !decision_.checkpoint) continue;
      save(decision_.stop != kNoFlag || trainer_->ended() || paused());
      decision_.checkpoint = false;
    }
    stopped_ = decision_.stop != kNoFlag && (!trainer_->ended() || lacks_evaluation_);
    // Asked to stop at the same step: started again in the same size, it sees that it is to pause.
    paused_ = paused() && !trainer_->ended() && !stopped_;
  }

  // What this rank would like after the next step. The clock of rank 0 decides for all; what is due
  // by it does not make the steps wait for the checkpoint before.
  [[nodiscard]] unsigned wishes() const {
    const double minutes = config_.checkpoint.every_minutes;
    const bool due = world_.rank() == 0 && minutes > 0 && !saving_->under_way() &&
                     PhaseClock::now() - last_save_time_ >= 60 * minutes;
    return stopping_->wishes() | saving_->flags() | (lost_lock() ? kStopAsked : kNoFlag) |
           (due ? kCheckpointDue : kNoFlag) |
           (state_.replan_after(trainer_->progress().steps + 1) != nullptr ? kReshapeDue : kNoFlag);
  }

  [[nodiscard]] bool due_at(index_t step) const {
    return config_.checkpoint.every_steps > 0 && step % config_.checkpoint.every_steps == 0;
  }

  // A GPU may still work on a step of the old plan: its report comes first.
  void rebalance() {
    if (!balancing_->due() || decision_.stop != kNoFlag || trainer_->ended()) return;
    take_reports(0);
    if (!balancing_->due() || decision_.stop != kNoFlag) return;
    reshape(balancing_->take(), balancing_->reason());
    balancing_->taken();
  }

  void replan_as_asked(const Plan& plan) {
    reshape(plan, "asked for by debug.replan");
    balancing_->forget();
  }

  void reshape(const Plan& plan, const std::string& reason) {
    const Plan before = trainer_->plan();
    const ReshapeReport done = trainer_->reshape(plan);
    report_->expect(done.predicted);
    try {
      const BusyScope busy("writing the plan into " + config_.run.dir);
      state_.keep_plan();
    } catch (const Error& error) {  // no agreement: the plan is in every checkpoint too
      report_->warn(error.what());
    }
    report_->reshaped(done.seconds, before, trainer_->plan(), reason);
    for (const std::string& name : done.reset)
      report_->warn(fmt::format("{} starts at 0 under the new plan", name));
  }

  // The first step has chosen the engines of a GPU.
  void keep_choices() {
    for (const std::string& text : machine_->ops().notes()) report_->warn(text);
    if (machine_->ops().choices().empty()) return;
    const std::string path = machine_->choices_file();
    const BusyScope busy("writing " + path);
    try {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      machine_->ops().save_choices(path);
    } catch (const std::exception& error) {
      report_->warn(fmt::format("engine choices are not kept: {}", error.what()));
    }
  }

  // Reads and writes down what has been done, until at most `left` steps await their report.
  void take_reports(index_t left) {
    while (trainer_->pending() > left) {
      const StepReport step = trainer_->finish_step();
      const bool last = trainer_->ended() && step.step == trainer_->progress().steps;
      // The last evaluation reads all of the text: who ends the job meanwhile loses no step.
      if (last && evaluation_->follows(step.step)) save(true);
      const Evaluation::Result evaluated = evaluate_after(step, last);
      report_->step(*trainer_, step, evaluated.losses);
      {
        const PhaseClock::Scope scope(machine_->clock(), "checkpoint");
        saving_->step_done(step.step, step.flags, !step.skipped);
      }
      last_words_.set_progress(step.step, last_saved());
      life_.saved(last_saved());
      stopping_->step_done(step, trainer_->steps());
      for (const std::string& text : stopping_->take_warnings()) report_->warn(text);
      warn_of_lock();
      life_.step_done([this](const std::string& what, std::function<void()> work) {
        report_->later(what, std::move(work));
      });
      provenance_->step_done(trainer_->ended() && step.step == trainer_->progress().steps);
      if (++steps_reported_ == 1) {
        start_clock_.mark("first step");
        report_->note(start_clock_.text());
      }
      evaluation_->tell(evaluated);
      balancing_->observe(step, trainer_->plan());
      if (const std::string text = balancing_->hindrance(); !text.empty()) report_->note(text);
      const Decision now = decide(step.flags);
      decision_.stop |= now.stop;
      decision_.report = decision_.report || now.report;
      decision_.checkpoint = decision_.checkpoint || now.checkpoint;
      decision_.reshape = decision_.reshape || now.reshape;
    }
  }

  // Who asks to stop does not wait for an evaluation: it is left out, or broken off. Of the one
  // after the last step a later life is told by the exit code.
  Evaluation::Result evaluate_after(const StepReport& step, bool last) {
    if (!evaluation_->follows(step.step)) return {};
    Evaluation::Result result;
    result.stop = decide(step.flags).stop;
    if (result.stop == kNoFlag) result = evaluation_->evaluate(last);
    stopping_->deaf_for(result.deaf_seconds);
    decision_.stop |= result.stop;
    lacks_evaluation_ = last && result.lacks_losses();
    if (result.lacks_losses())
      report_->note(
          fmt::format("no validation after step {}: {}", step.step, Stopping::reason(result.stop)));
    return result;
  }

  void make_evaluation() {
    evaluation_ = std::make_unique<Evaluation>(
        world_, config_, texts_.validation, state_.tokenizer(), *trainer_, *report_,
        [this] { return stopping_->stop_wishes() | (lost_lock() ? kStopAsked : kNoFlag); });
  }

  // On rank 0. The save that follows the stop ends the run with an error.
  [[nodiscard]] bool lost_lock() const { return lock_ != nullptr && lock_->lost(); }

  void warn_of_lock() {
    if (lock_ == nullptr) return;
    for (const std::string& text : lock_->take_warnings()) report_->warn(text);
  }

  // A checkpoint that cannot be written costs a warning, not the run; at the end it costs the exit
  // code. A lock that is lost ends the run: the folder is another job's.
  void save(bool now) {
    const PhaseClock::Scope scope(machine_->clock(), "checkpoint");
    saving_->save(state_.to_save(), trainer_->parts_to_save(), now, trainer_->ended());
    life_.saved(last_saved());
    last_save_time_ = PhaseClock::now();
  }

  // What ends the run on all ranks is no reason to lose a checkpoint that is under way.
  void end_saving() {
    try {
      saving_->settle();
    } catch (const AgreedError& error) {
      report_->warn(error.what());
    }
  }

  /// Of the newest checkpoint that this life has published or goes on from; -1 without one.
  [[nodiscard]] index_t last_saved() const { return saving_ ? saving_->last_saved() : began_at_; }

  void make_saving() {
    saving_ = std::make_unique<Saving>(
        world_, config_, lock_.get(), began_at_,
        Saving::Hearer{[this](const std::string& text) { report_->note(text); },
                       [this](const std::string& text) { report_->warn(text); },
                       [this] {
                         stopping_->save_begun();
                         report_->writing(true);
                       },
                       [this](double seconds) {
                         stopping_->save_done(seconds);
                         report_->writing(false);
                       }},
        report_->files());
    const std::vector<TensorPart> parts = trainer_->parts_to_save();
    const std::string digest = whole_digest(world_, digest_of_parts(parts, Trainer::kPrivateState));
    report_->note(state_.digest_note(digest));
    const bool on_gpu = machine_->choice().gpu >= 0;
    saving_->prepare(
        parts, snapshot_shortage(world_, trainer_->plan(), parts, on_gpu, state_.planned().room));
  }

  /// The input asks for no more than the checkpoint has.
  int nothing_left() {
    if (evaluation_->is_owed()) return evaluate_at_last();
    const std::string reason = fmt::format(
        "nothing is left to do: the checkpoint is at step {} and the run ends at step {}",
        trainer_->progress().steps, trainer_->steps());
    report_->note(reason);
    const bool by_tokens = config_.run.steps == 0;
    const index_t more = 2 * (by_tokens ? config_.run.tokens : trainer_->steps());
    report_->note(
        "to train on, as for a run twice as long (its learning rates are those of that "
        "length): " +
        next_command(command_, fmt::format("run.{}={}", by_tokens ? "tokens" : "steps", more)));
    return end_together(ExitCode::done, reason);
  }

  /// What the life before was stopped in.
  int evaluate_at_last() {
    const index_t done = trainer_->progress().steps;
    report_->note(fmt::format("all {} are done; the validation after the last one is made up for",
                              counted(done, "step")));
    const Evaluation::Result result = evaluation_->evaluate(true);
    evaluation_->tell(result);
    if (!result.lacks_losses()) return end_together(ExitCode::done, "all steps done");
    end_.stopped(result.stop);
    return end_together(ExitCode::retry, Stopping::reason(result.stop) + kInEvaluation);
  }

  int finish() {
    all_or_none(world_, [&] {
      if (lost_lock()) lock_->check();
    });
    const std::string reason = stopped_  ? stop_reason() + (lacks_evaluation_ ? kInEvaluation : "")
                               : paused_ ? pause_reason()
                                         : "all steps done";
    report_->finish(reason);
    if (stopped_) end_.stopped(decision_.stop);
    if (last_saved() != trainer_->progress().steps)
      throw AgreedError(ExitCode::io,
                        "the last checkpoint could not be written; see the warnings above");
    if (paused_) end_.paused();
    if (stopped_) report_->note("to continue, on any number of ranks: " + next_command(command_));
    const ExitCode code = stopped_ || paused_ ? ExitCode::retry : ExitCode::done;
    provenance_->end(world_, report_->totals(), static_cast<int>(code), reason,
                     trainer_->plan().hash());
    end_files();
    return end_together(code, reason);
  }

  // A stop has no time to lose.
  void end_files() {
    constexpr double kAtStop = 5, kAtEnd = 60;
    const double limit = config_.debug.io_seconds;
    saving_->end_removal(std::min(stopped_ ? kAtStop : kAtEnd, limit));
    all_or_none(*checkpoint_group(world_), [&] { report_->settle_files(limit); });
  }

  /// Returns the status.
  int end_together(ExitCode code, const std::string& reason) {
    if (world_.rank() == 0) record_end(code, reason);
    return static_cast<int>(code);
  }

  [[nodiscard]] std::string stop_reason() const {
    return lost_lock()
               ? "stopped because the lock of the run folder was lost for some time; it is back"
               : Stopping::reason(decision_.stop);
  }
  /// Here a job of another size is to go on.
  [[nodiscard]] bool paused() const {
    return config_.run.pause_at > 0 && trainer_->progress().steps >= config_.run.pause_at;
  }
  [[nodiscard]] std::string pause_reason() const {
    return fmt::format("paused at step {} (run.pause_at = {})", trainer_->progress().steps,
                       config_.run.pause_at);
  }
  /// The life before has paused already, and this one is of its size.
  int wait_for_next() {
    end_.paused();
    report_->note(pause_reason());
    return end_together(ExitCode::retry, pause_reason());
  }

  /// Also before there is a log, and on ranks that have none.
  void warn(const std::string& text) {
    if (report_ && world_.rank() == 0) return report_->warn(text);
    std::fputs(("transformer3d: warning: " + text + "\n").c_str(), stderr);
  }

  Communicator& world_;
  const CommandLine& command_;
  ReadPatience patience_{patience_of_start()};
  LastWords last_words_;
  Life life_{[this](const std::string& text) { warn(text); }};
  std::unique_ptr<PeerWatch> watch_;  // until everything below has ended
  std::unique_ptr<RunLock> lock_;     // rank 0's; given back when everything else has ended
  Origins origins_;
  Config config_;
  JobEnd end_{config_, world_.rank(), life_, [this](const std::string& text) { warn(text); }};
  index_t began_at_ = -1;          // step of the checkpoint that this life goes on from
  Decision decision_;              // of the steps whose reports have been read
  bool stopped_ = false;           // it came to a stop before the end
  bool lacks_evaluation_ = false;  // which was that after the last step
  bool paused_ = false;            // at run.pause_at
  std::unique_ptr<Stopping> stopping_;
  double last_save_time_ = 0;
  index_t steps_run_ = 0;  // by this process
  index_t steps_reported_ = 0;
  StartClock start_clock_;
  std::vector<std::string> early_notes_;
  Texts texts_;
  JobState state_{world_, config_,      origins_,
                  texts_, start_clock_, [this](index_t checkpoint) { stop_if_asked(checkpoint); }};
  Machine* machine_ = nullptr;  // of state_, as it has begun
  Trainer* trainer_ = nullptr;
  std::unique_ptr<JobReport> report_;
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<Provenance> provenance_;
  std::unique_ptr<Balancing> balancing_;
  std::unique_ptr<Saving> saving_;
};

}  // namespace

int run_training(Communicator& world, const CommandLine& command, std::function<void()>& last_act) {
  catch_stop_signals();
  TrainJob job(world, command);
  try {
    const int status = job.run();
    last_act = job.last_act();
    return status;
  } catch (const std::exception& error) {
    const bool agreed = dynamic_cast<const AgreedError*>(&error) != nullptr;
    const Error cause = as_error(error);
    // The others hear of it first: to write it down, and Slurm's answers, may take minutes.
    if (!agreed) job.end_alone(cause.what());
    if (agreed) job.look_whether_it_passes(cause.code());
    if (!agreed || world.rank() == 0) job.record_end(cause.code(), cause.what());
    last_act = job.last_act();
    if (!agreed && last_act) last_act();  // before MPI_Abort
    throw;
  }
}

}  // namespace t3d
