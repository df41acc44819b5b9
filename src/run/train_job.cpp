// The main job: train from an input file, from the newest checkpoint on, until the steps are done
// or somebody asks to stop. Policy only; the arithmetic is in train/. What the steps begin with:
// job_state; how the job ends: job_end.
#include "run/train_job.hpp"

#include <algorithm>
#include <filesystem>

#include "comm/agree.hpp"
#include "comm/busy.hpp"
#include "comm/peers/peer_watch.hpp"
#include "comm/placement.hpp"
#include "config/defaults.hpp"
#include "core/commas.hpp"
#include "core/counted.hpp"
#include "core/env_seconds.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/shared_folder.hpp"
#include "io/checkpoint/state_digest.hpp"
#include "io/lock/run_lock.hpp"
#include "io/read_patience.hpp"
#include "run/balancing.hpp"
#include "run/epochs.hpp"
#include "run/evaluation.hpp"
#include "run/init_weights.hpp"
#include "run/job_end.hpp"
#include "run/job_report.hpp"
#include "run/job_start.hpp"
#include "run/job_state.hpp"
#include "run/kept_input.hpp"
#include "run/last_words.hpp"
#include "run/life.hpp"
#include "run/memory_room.hpp"
#include "run/next_command.hpp"
#include "run/provenance.hpp"
#include "run/saving.hpp"
#include "run/setup.hpp"
#include "run/start_clock.hpp"
#include "run/stopping.hpp"
#include "run/texts.hpp"
#include "run/train_loop.hpp"
#include "sched/stop_signal.hpp"
#include "train/step/trainer.hpp"

namespace t3d {
namespace {

constexpr const char* kInEvaluation = ": all steps are done, the last validation is not";

class TrainJob {
 public:
  TrainJob(Communicator& world, const RunWords& command, const MakeStepPredictor& predict)
      : world_(world),
        command_(command),
        predict_(predict),
        start_(world, command, [this](const std::string& text) { warn(text); }) {}

  int run() {
    start_.prepare();
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
    make_loop();
    try {
      loop_->run();
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
    if (start_.watch) start_.watch->end_with(cause);
  }

  /// An end that only this rank knows of; on rank 0 also one that all have come to.
  /// `alone`: the launcher soon ends this process for the others, which have heard of it.
  void record_end(ExitCode code, const std::string& reason, bool alone = false) {
    constexpr double kMoment = 1;
    // The last file is exit.json.
    if (report_) report_->settle_files(alone ? kMoment : FileService::kLastSeconds);
    start_.end.record(
        code, reason,
        {began_at_, loop_ ? loop_->steps_run() : 0, state_.steps_done(), last_saved()});
  }

  void look_whether_it_passes(ExitCode code) { start_.look_whether_it_passes(code); }

  [[nodiscard]] const std::function<void()>& last_act() const { return start_.end.last_act(); }

 private:
  // Before the first step nothing was learned that a checkpoint would have to keep, and the one
  // that the run would have continued from stays. Collective: a signal may have reached some ranks
  // only.
  void stop_if_asked(index_t checkpoint) {
    auto asked = static_cast<std::int32_t>(start_.stopping->stop_wishes());
    world_.all_reduce({&asked, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
    if (asked == 0) return;
    const auto flags = static_cast<unsigned>(asked);
    start_.end.stopped(flags);
    began_at_ = checkpoint;
    throw AgreedError(ExitCode::retry, Stopping::reason(flags) + " before the first step");
  }

  void start() {
    const ReadPatience::Scope patient(start_.patience);
    const std::vector<std::string> warnings = begin_state();
    const std::optional<CheckpointInfo>& info = state_.checkpoint();
    const Lineage& lineage = state_.lineage();
    if (start_.lock) start_.lock->set_run(state_.run_id());
    began_at_ = info ? info->state.step : -1;
    const bool begins = !info || !(info->state.lineage == lineage);
    const LogLineage of_log{lineage.number, begins, lineage.parent_lineage};
    // Rank 0 makes the logs ready, which may be long: the limit is that of files.
    all_or_none(*checkpoint_group(world_), [&] {
      report_ = std::make_unique<JobReport>(*machine_, config_, trainer_->progress().steps, of_log,
                                            command_.quiet);
      keep_records(info.has_value());
      start_.life.goes_on(info, trainer_->progress().steps, lineage.number);
    });
    report_->banner(*trainer_);
    if (!start_.input.fault.empty())
      report_->warn(
          fmt::format("{} has faults, and this life goes on with {}/accepted.toml, the "
                      "input that was accepted last: {}",
                      command_.input, config_.run.dir, start_.input.fault));
    for (const std::string& text : warnings) report_->warn(text);
    for (const std::string& text : start_.early_notes) report_->note_folded(text);
    state_.tell_origin(*report_);
    start_.last_words.set_progress(trainer_->progress().steps, last_saved());
    if (!start_.watch->gaps().empty())
      report_->warn(start_.watch->gaps() + ": a rank that is lost may be noticed late");
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
      if (world_.rank() == 0) keep_input(config_.run.dir, command_.input, start_.input.text);
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
    const std::vector<EpochSource> sources = epoch_sources(*start_.texts.train, config_.data);
    const EpochText epochs = epoch_text(sources, samples * context);
    const auto before = static_cast<double>(trainer_->progress().samples);
    report_->count_epochs({sources, before * context, samples * context});
    for (const std::string& text : epochs.lines) report_->note_folded(text);
    if (!epochs.warning.empty()) report_->warn(epochs.warning);
  }

  // A prediction is no reason to end a run: what it lacks is said, and the run goes on without it.
  void predict_steps() {
    if (config_.hetero.cluster.empty() || world_.rank() != 0 || !predict_) return;
    try {
      const PlanBasis& basis = state_.planned().basis;
      auto predictor = predict_(config_.hetero.cluster, basis.nodes, basis.devices);
      report_->note_folded(fmt::format("a step of this plan should take {} ms, by {}",
                                       readable(1e3 * predictor->seconds(trainer_->plan()), 4),
                                       config_.hetero.cluster));
      report_->predict_by(std::move(predictor), state_.run_id());
    } catch (const std::exception& error) {
      report_->warn(fmt::format("no prediction of steps: {}", error.what()));
    }
  }

  void begin_provenance() {
    provenance_ = std::make_unique<Provenance>(
        start_.lock.get(), config_.run.dir,
        [this](const std::string& text) { report_->warn(text); }, later_);
    LifeStart start;
    start.life = start_.life.number();
    start.vendor_peak = report_->peak_rate();
    state_.describe(start);
    provenance_->begin(*machine_, std::move(start), trainer_->predicted_step());
  }

  void make_evaluation() {
    evaluation_ = std::make_unique<Evaluation>(
        world_, config_, start_.texts.validation, state_.tokenizer(), *trainer_, *report_,
        [this] { return start_.stopping->stop_wishes() | (lost_lock() ? kStopAsked : kNoFlag); });
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
        world_, config_, start_.lock.get(), began_at_,
        Saving::Hearer{[this](const std::string& text) { report_->note(text); },
                       [this](const std::string& text) { report_->warn(text); },
                       [this] {
                         start_.stopping->save_begun();
                         report_->writing(true);
                       },
                       [this](double seconds) {
                         start_.stopping->save_done(seconds);
                         report_->writing(false);
                       },
                       [this] { report_->sync_files(); }},
        report_->files());
    const std::vector<TensorPart> parts = trainer_->parts_to_save();
    const std::string digest = whole_digest(world_, digest_of_parts(parts, Trainer::kPrivateState));
    report_->note(state_.digest_note(digest));
    const bool on_gpu = machine_->choice().gpu >= 0;
    saving_->prepare(
        parts, snapshot_shortage(world_, trainer_->plan(), parts, on_gpu, state_.planned().room));
  }

  void make_loop() {
    loop_ = std::make_unique<TrainLoop>(
        TrainLoop::Parts{world_, config_, state_, *machine_, *trainer_, *report_, *start_.stopping,
                         *evaluation_, *balancing_, *saving_, *provenance_, start_.life,
                         start_.last_words, start_clock_, start_.lock.get(), later_});
  }

  /// The input asks for no more than the checkpoint has.
  int nothing_left() {
    if (evaluation_->is_owed()) return evaluate_at_last();
    const std::string reason = fmt::format(
        "nothing is left to do: the checkpoint is at step {} and the run ends at step {}",
        trainer_->progress().steps, trainer_->steps());
    report_->note(reason);
    const bool by_tokens = config_.run.steps == 0;
    const index_t more =
        2 * (by_tokens ? static_cast<index_t>(config_.run.tokens) : trainer_->steps());
    report_->note(
        "to train on, as for a run twice as long (its learning rates are those of that "
        "length): " +
        next_command(command_, {"run.pause_at"},
                     fmt::format("run.{}={}", by_tokens ? "tokens" : "steps", more)));
    return end_together(ExitCode::done, reason);
  }

  [[nodiscard]] std::string continuation_text() const {
    const std::string command = next_command(command_, {"checkpoint.restart"});
    const MeshConfig& mesh = config_.mesh;
    const bool any = mesh.cuboid_auto && mesh.cuboids.empty() && mesh.place.empty() &&
                     mesh.plan.empty() && (mesh.replicas_auto || mesh.replicas == 1);
    if (any) return "to continue, on any number of ranks: " + command;
    const std::string ranks = counted(world_.size(), "rank");
    return fmt::format("to continue, on {}, since the mesh is written: {}{}", ranks,
                       world_.size() > 1 ? fmt::format("mpirun -n {} ", world_.size()) : "",
                       command);
  }

  /// What the life before was stopped in.
  int evaluate_at_last() {
    const index_t done = trainer_->progress().steps;
    report_->note(fmt::format("all {} are done; the validation after the last one is made up for",
                              counted(done, "step")));
    const Evaluation::Result result = evaluation_->evaluate(true);
    evaluation_->tell(result);
    if (!result.lacks_losses()) return end_together(ExitCode::done, "all steps done");
    start_.end.stopped(result.stop);
    return end_together(ExitCode::retry, Stopping::reason(result.stop) + kInEvaluation);
  }

  int finish() {
    all_or_none(world_, [&] {
      if (lost_lock()) start_.lock->check();
    });
    const std::string reason =
        loop_->stopped()      ? stop_reason() + (loop_->lacks_evaluation() ? kInEvaluation : "")
        : loop_->has_paused() ? pause_reason()
                              : "all steps done";
    report_->finish(reason);
    if (loop_->stopped()) start_.end.stopped(loop_->stop_flags());
    if (last_saved() != trainer_->progress().steps)
      throw AgreedError(ExitCode::io,
                        "the last checkpoint could not be written; see the warnings above");
    if (loop_->has_paused()) start_.end.paused();
    if (loop_->stopped()) report_->note(continuation_text());
    const ExitCode code =
        loop_->stopped() || loop_->has_paused() ? ExitCode::retry : ExitCode::done;
    provenance_->end(world_, report_->totals(), static_cast<int>(code), reason,
                     trainer_->plan().hash());
    end_files();
    return end_together(code, reason);
  }

  // A stop has no time to lose.
  void end_files() {
    constexpr double kAtStop = 5, kAtEnd = 60;
    const double limit = config_.debug.io_seconds;
    const double most = loop_->stopped() ? kAtStop : kAtEnd;
    saving_->end_removal(limit > 0 ? std::min(most, limit) : most);
    all_or_none(*checkpoint_group(world_),
                [&] { report_->settle_files(loop_->stopped() ? kAtStop : limit / 2); });
  }

  /// Returns the status.
  int end_together(ExitCode code, const std::string& reason) {
    if (world_.rank() == 0) record_end(code, reason);
    return static_cast<int>(code);
  }

  [[nodiscard]] std::string stop_reason() const {
    return lost_lock()
               ? "stopped because the lock of the run folder was lost for some time; it is back"
               : Stopping::reason(loop_->stop_flags());
  }
  [[nodiscard]] bool paused() const { return is_paused(config_, *trainer_); }
  [[nodiscard]] bool lost_lock() const { return is_lost(start_.lock.get()); }
  [[nodiscard]] std::string pause_reason() const {
    return fmt::format("paused at step {} (run.pause_at = {})", trainer_->progress().steps,
                       config_.run.pause_at);
  }
  /// The life before has paused already, and this one is of its size.
  int wait_for_next() {
    start_.end.paused();
    report_->note(pause_reason());
    return end_together(ExitCode::retry, pause_reason());
  }

  /// Also before there is a log, and on ranks that have none.
  void warn(const std::string& text) {
    if (report_ && world_.rank() == 0) return report_->warn(text);
    std::fputs(("transformer3d: warning: " + text + "\n").c_str(), stderr);
  }

  Communicator& world_;
  const RunWords& command_;
  const MakeStepPredictor& predict_;
  JobStart start_;
  Config& config_ = start_.config;
  const Origins& origins_ = start_.origins;
  const Provenance::Later later_{[this](const std::string& what, std::function<void()> work) {
    report_->later(what, std::move(work));
  }};
  index_t began_at_ = -1;  // step of the checkpoint that this life goes on from
  StartClock start_clock_;
  JobState state_{world_,       config_,
                  origins_,     start_.texts,
                  start_clock_, [this](index_t checkpoint) { stop_if_asked(checkpoint); }};
  Machine* machine_ = nullptr;  // of state_, as it has begun
  Trainer* trainer_ = nullptr;
  std::unique_ptr<JobReport> report_;
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<Provenance> provenance_;
  std::unique_ptr<Balancing> balancing_;
  std::unique_ptr<Saving> saving_;
  std::unique_ptr<TrainLoop> loop_;
};

}  // namespace

int run_training(Communicator& world, const RunWords& command, const MakeStepPredictor& predict,
                 std::function<void()>& last_act) {
  catch_stop_signals();
  TrainJob job(world, command, predict);
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
    if (!agreed || world.rank() == 0) job.record_end(cause.code(), cause.what(), !agreed);
    last_act = job.last_act();
    if (!agreed && last_act) last_act();  // before MPI_Abort
    throw;
  }
}

}  // namespace t3d
