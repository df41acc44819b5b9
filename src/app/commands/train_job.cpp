// The main job: train from an input file, from the newest checkpoint on, until the steps are done
// or somebody asks to stop. Policy only; the arithmetic is in train/.
#include <algorithm>
#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>

#include "app/commands/balancing.hpp"
#include "app/commands/commands.hpp"
#include "app/commands/continuation.hpp"
#include "app/commands/data_identity.hpp"
#include "app/commands/first_plan.hpp"
#include "app/commands/init_weights.hpp"
#include "app/commands/job_end.hpp"
#include "app/commands/job_report.hpp"
#include "app/commands/last_words.hpp"
#include "app/commands/life.hpp"
#include "app/commands/memory_room.hpp"
#include "app/commands/provenance.hpp"
#include "app/commands/rank_plan.hpp"
#include "app/commands/replan.hpp"
#include "app/commands/saving.hpp"
#include "app/commands/setup.hpp"
#include "app/commands/start_clock.hpp"
#include "app/commands/stopping.hpp"
#include "app/commands/texts.hpp"
#include "app/commands/tokenizer_check.hpp"
#include "app/config/config_schema.hpp"
#include "app/config/defaults.hpp"
#include "app/stop_signal.hpp"
#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "device/host_limits.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/shared_folder.hpp"
#include "io/checkpoint/state_digest.hpp"
#include "io/lock/run_lock.hpp"
#include "io/log/run_log.hpp"
#include "io/posix_file.hpp"
#include "train/step/reshape.hpp"
#include "train/step/state_parts.hpp"
#include "train/step/trainer.hpp"

namespace t3d {
namespace {

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

class TrainJob {
 public:
  TrainJob(Communicator& world, const CommandLine& command)
      : world_(world), command_(command), last_words_(world.rank()) {}

  int run() {
    prepare();
    start_clock_.mark("input and data");
    start();
    start_clock_.mark("state");
    if (trainer_->ended()) return nothing_left();
    if (paused()) return wait_for_next();
    stop_if_asked();
    basis_.matmul =
        measure_matmul_rate(*machine_, trainer_->plan().activation(), from_->matmul_rate(basis_));
    report_->open(*trainer_, basis_.matmul.flops_per_second);
    predict_steps();
    start_clock_.mark("matmul rate");
    make_balancing();
    make_saving();
    stop_if_asked();
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
    const Plan& plan = trainer_->plan();
    std::optional<Balancing::Replanning> replanning;
    Speeds known = speeds_ ? *speeds_ : equal_speeds(world_);
    if (!written_by_hand(origins_)) {
      PlanRequest request = request_like(config_, plan_facts(*machine_), plan);
      open_shape(open_mesh_, request);
      replanning = {std::move(request), std::move(known)};
    }
    const BalanceOptions options = balance_options(config_, origins_);
    if (options.kind != config_.balance.kind)
      report_->note(
          "the batch stays divided as it is written; with balance.kind written, it is balanced");
    balancing_ =
        std::make_unique<Balancing>(world_, options, config_.batch.micro, room_,
                                    machine_->choice().gpu >= 0, speeds_, std::move(replanning));
  }

  /// An error that only this rank knows of ends it: the others are not to wait for it.
  void end_alone() {
    if (watch_) watch_->end_unnoticed();
  }

  /// An end that only this rank knows of (`alone`), or that all have come to.
  void record_end(ExitCode code, const std::string& reason, bool alone = false) {
    const index_t done = trainer_ ? trainer_->progress().steps : 0;
    end_.record(code, reason, {began_at_, steps_run_, done, last_saved()},
                alone || world_.rank() == 0);
  }

  [[nodiscard]] const std::function<void()>& last_act() const { return end_.last_act(); }

 private:
  void prepare() {
    config_ = load_input(world_, command_.input, command_.overrides, world_.size(), origins_);
    last_words_.set_requeue(config_.run.requeue);
    world_.set_watchdog(config_.debug.watchdog_seconds);
    world_.set_wait_limit(kCheckpointAxis, config_.debug.io_seconds);
    watch_ = std::make_unique<PeerWatch>(
        world_, PeerWatch::Options{config_.debug.lost_seconds,
                                   [this](const PeerLoss& loss) { last_words_.say(loss); },
                                   [this] { last_words_.end(); }});
    texts_ = open_texts(world_, config_);
    const std::vector<int> nodes = node_of_ranks(world_);
    check_first_weights(world_, config_);
    // Another job's lock may have to be waited for: the limit is that of files.
    all_or_none(*checkpoint_group(world_), [&] {
      if (world_.rank() == 0) prepare_folder(1 + *std::max_element(nodes.begin(), nodes.end()));
    });
    end_.set_folder(lock_.get());
    if (broadcast_text(world_, life_.goes_on_in_job() ? "auto" : "") == "auto") {
      early_notes_.push_back(fmt::format("-r {} was for the first life of this job; it goes on",
                                         config_.checkpoint.restart));
      config_.checkpoint.restart = "auto";
    }
    check_folders(nodes);
    last_words_.set_folder(config_.run.dir);
    stopping_ = std::make_unique<Stopping>(config_, world_.rank() == 0);
  }

  // Other ranks than 0 write into the run folder too: last words, choices of engines.
  void check_folders(const std::vector<int>& nodes) {
    const std::string token = broadcast_text(world_, lock_ ? lock_->lease().token : "");
    const std::string &dir = config_.run.dir, &checkpoints = config_.checkpoint.dir;
    check_shared_folder(world_, nodes, checkpoints, token);
    if (!checkpoints.starts_with(dir + "/")) check_shared_folder(world_, nodes, dir, token);
  }

  // Before the first step nothing was learned that a checkpoint would have to keep, and the one
  // that the run would have continued from stays. Collective: a signal may have reached some ranks
  // only.
  void stop_if_asked() {
    auto asked = static_cast<std::int32_t>(stopping_->stop_wishes());
    world_.all_reduce({&asked, DType::i32, 1, 1}, ReduceOp::bit_or).wait_host();
    if (asked == 0) return;
    const auto flags = static_cast<unsigned>(asked);
    end_.stopped(flags);
    if (from_->info()) began_at_ = from_->info()->state.step;
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
    for (const std::string& folder : folders) remove_old_checks(folder);
    life_.begin(config_, *lock_, world_.size(), nodes);
  }

  // The tokenizer is kept where the checkpoints are, also when they come from another folder.
  // Rank 0 looks, and says what the others need.
  void check_tokenizer(const std::optional<CheckpointInfo>& info) {
    all_or_none(world_, [&] {
      if (world_.rank() != 0) return;
      tokenizer_ = check_tokenizers(config_.data, texts_.train->tokens(), texts_.validation_sets(),
                                    info ? &*info : nullptr);
      // Tokens that were added to a vocabulary are not known to the weights' own tokenizer.
      if (init_source_ && !config_.init.grow_vocab)
        (void)same_tokenizer(tokenizer_of(*init_source_),
                             {tokenizer_.hash, tokenizer_of(texts_.train->tokens()).who},
                             tokenizer_.notes);
      const std::string file = tokenizer_file(config_.checkpoint.dir, tokenizer_.hash);
      if (!tokenizer_.model.empty() && !path_exists(file))
        write_text_durably(file, tokenizer_.model);
    });
    world_.broadcast({&tokenizer_.hash, DType::i32, 1, 2}, 0).wait_host();
  }

  // Says what the run is trained on, and compares it with what it was.
  void check_data(const std::optional<CheckpointInfo>& info) {
    all_or_none(world_, [&] {
      data_text_ = data_text(*texts_.train, config_.data, tokenizer_.hash);
      if (!info || !info->state.texts.contains(kDataText)) return;
      data_change_ = data_change(info->state.texts.at(kDataText), data_text_, info->path);
    });
  }

  void start() {
    std::vector<std::string> notes;
    const auto warn = [&](const std::string& text) { notes.push_back(text); };
    try {
      continue_or_begin(warn);
    } catch (...) {
      for (const std::string& text : notes) fmt::print(stderr, "transformer3d: {}\n", text);
      throw;
    }
    const std::optional<CheckpointInfo>& info = from_->info();
    run_id_ = info ? info->state.run_id : new_run_id();
    check_tokenizer(info);
    check_data(info);
    lineage_ = next_lineage(world_, config_.checkpoint.dir, info, warn);
    if (lock_) lock_->set_run(run_id_);
    began_at_ = info ? info->state.step : -1;
    const bool begins = !info || !(info->state.lineage == lineage_);
    const LogLineage of_log{lineage_.number, begins, lineage_.parent_lineage};
    all_or_none(world_, [&] {
      report_ = std::make_unique<JobReport>(*machine_, config_, trainer_->progress().steps, of_log,
                                            command_.quiet);
      keep_records(info.has_value());
    });
    life_.goes_on(info, trainer_->progress().steps, lineage_.number);
    for (const std::string& text : notes) report_->warn(text);
    for (const std::string& text : early_notes_) report_->note(text);
    for (const std::string& text : input_warnings_) report_->warn(text);
    for (const std::string& text : tokenizer_.notes) report_->note(text);
    report_->note(
        fmt::format("data {}: {} tokens", data_hash(data_text_), texts_.train->tokens().size()));
    if (!data_change_.empty()) report_->warn(data_change_);
    if (info)
      report_->note(fmt::format("resumed from {} at step {}", info->path, info->state.step));
    last_words_.set_progress(trainer_->progress().steps, last_saved());
    if (!watch_->gaps().empty())
      report_->warn(watch_->gaps() + ": a rank that is lost may be noticed late");
    for (const std::string& text : plan_notes_) report_->note("plan: " + text);
    if (!memory_warning_.empty())
      report_->warn("memory will be short unless others give some back: " + memory_warning_);
    for (const Replan& replan : replans_)
      if (replan.step <= trainer_->progress().steps || replan.step >= trainer_->steps())
        report_->warn(fmt::format("debug.replan: this run has no steps on both sides of step {}",
                                  replan.step));
    if (const std::string text = placement_warning(world_); !text.empty()) report_->warn(text);
  }

  // For readers of the folder: the checkpoints hold the same. A new run that cannot write them has
  // nothing to lose; one that goes on is not to end for them.
  void keep_records(bool goes_on) {
    try {
      report_->write_resolved(resolved_text(config_, origins_));
      keep_plan();
    } catch (const Error& error) {
      if (!goes_on) throw;
      report_->warn(fmt::format("{}: what this file says is of an earlier life", error.what()));
    }
  }

  /// From what checkpoint.restart asks for.
  void continue_or_begin(const Warn& warn) {
    const Config asked = config_;
    const auto parts_of = [&](const CheckpointInfo& info) {
      form(asked, info);
      return from_->parts(*trainer_);
    };
    const std::string& wish = asked.checkpoint.restart;
    bool found = wish != "never";
    if (wish == "auto") {
      found = load_newest(world_, asked.checkpoint.dir, parts_of, warn, Trainer::kPrivateState)
                  .has_value();
    } else if (found) {
      std::vector<TensorPart> parts = parts_of(open_checkpoint(world_, wish));
      load_checkpoint(world_, wish, parts, Trainer::kPrivateState);
    }
    if (!found) form(asked, {});
    if (!found && !config_.init.from.empty()) take_weights();
    from_->restore(*trainer_, warn);
  }

  /// The first weights, each rank its own boxes.
  void take_weights() {
    std::vector<TensorPart> parts = trainer_->parts();
    init_source_ = find_init_source(world_, config_.init.from);
    all_or_none(world_, [&] {
      if (world_.rank() != 0) return;
      check_same_computation(*init_source_, config_.model);
      plan_notes_.push_back(fmt::format("weights from {}{}", init_source_->path,
                                        adapters_text(*init_source_, config_.model)));
    });
    read_together(world_, [&] {
      fill_weights(*init_source_, needs_of(config_.model, config_.init.grow_vocab), parts);
    });
    trainer_->restore(0, {}, config_.batch.sequences);
  }

  /// Machine, plan and trainer as `info`, or nothing, and the input ask for; in place of those made
  /// for a checkpoint that turned out damaged: an older one may be of another plan.
  void form(const Config& asked, const std::optional<CheckpointInfo>& info) {
    trainer_.reset();
    machine_.reset();
    plan_notes_.clear();
    replans_.clear();
    config_ = asked;
    open_mesh_ = open_mesh(config_.mesh);
    from_ = std::make_unique<Continuation>(world_, config_, origins_, info);
    stop_if_asked();
    all_or_none(world_, [&] { from_->adopt(config_); });
    const NodeKinds kinds = find_node_kinds(world_, config_);
    input_warnings_ = unused_input(config_, world_.size());
    input_warnings_.insert(input_warnings_.end(), kinds.notes.begin(), kinds.notes.end());
    machine_ = std::make_unique<Machine>(world_, machine_options(config_, kinds));
    const Plan plan = find_plan(kinds);
    const bool on_gpu = machine_->choice().gpu >= 0;
    // Refused with the arithmetic now rather than in the middle of a step.
    check_memory(world_, plan, room_, on_gpu);
    all_or_none(world_, [&] {
      for (const std::string& wish : config_.debug.replan) {
        Replan replan = parse_replan(wish, plan);
        if (replan_after(replan.step) != nullptr)
          throw_error(ExitCode::config, "debug.replan: two changes after step {}", replan.step);
        replans_.push_back(std::move(replan));
      }
    });
    for (const Replan& replan : replans_) check_memory(world_, replan.plan, room_, on_gpu);
    start_clock_.mark("plan and probe");
    trainer_ = std::make_unique<Trainer>(*machine_, plan, train_options(config_, world_.size()),
                                         texts_.train);
    stop_if_asked();
  }

  /// The checkpoint's where it still is one for these ranks; else one by their speeds. Collective.
  [[nodiscard]] Plan find_plan(const NodeKinds& kinds) {
    const PlanFacts facts = plan_facts(*machine_);
    const DeviceChoice& choice = machine_->choice();
    Plan plan;
    all_or_none(world_, [&] { plan = from_->make_plan(facts); });
    room_ = memory_room(world_, config_, plan, machine_->device(),
                        choice.gpu >= 0 ? choice.sharers : 0);
    basis_ = plan_basis(*machine_, config_);
    const MemoryRooms rooms{gather_rooms(world_, room_.bytes), gather_rooms(world_, room_.most)};
    Config input = config_;
    all_or_none(world_, [&] {
      const std::string why = from_->outdated(basis_, rooms.free);
      if (why.empty()) return;
      plan_notes_.push_back("made anew: " + why);
      input = from_->drop_plan();
      plan = make_plan(input, facts);
    });
    speeds_ = from_->speeds(world_.size());
    if (!from_->keeps_plan() && !config_.mesh.plan.empty() && !from_->info()) {
      all_or_none(world_, [&] { plan = plan_instead("mesh.plan", config_.mesh.plan, plan); });
      plan_notes_.push_back("as mesh.plan says");
    } else if (!from_->keeps_plan()) {
      const index_t next = from_->info() ? from_->info()->state.step + 1 : 1;
      const double dilation =
          train_options(config_, world_.size()).slowdown.factor(world_.rank(), next);
      FirstPlan first = first_plan(*machine_, input, origins_, kinds, rooms, plan, dilation);
      plan = std::move(first.plan);
      speeds_ = std::move(first.speeds);
      plan_notes_.insert(plan_notes_.end(), first.notes.begin(), first.notes.end());
    }
    all_or_none(world_, [&] {
      const std::vector<std::string> changes = from_->changes(plan, basis_);
      plan_notes_.insert(plan_notes_.begin(), changes.begin(), changes.end());
    });
    memory_warning_ = lacking_memory(plan, basis_, rooms.free);
    return plan;
  }

  // A prediction is no reason to end a run: what it lacks is said, and the run goes on without it.
  void predict_steps() {
    if (config_.hetero.cluster.empty() || world_.rank() != 0) return;
    try {
      StepPrediction prediction(config_.hetero.cluster, basis_.nodes, basis_.devices);
      report_->note(fmt::format("a step of this plan should take {:.4g} ms, by {}",
                                1e3 * prediction.seconds(trainer_->plan()),
                                config_.hetero.cluster));
      report_->predict_by(std::move(prediction), run_id_);
    } catch (const std::exception& error) {
      report_->warn(fmt::format("no prediction of steps: {}", error.what()));
    }
  }

  void begin_provenance() {
    provenance_ = std::make_unique<Provenance>(
        lock_.get(), config_.run.dir, [this](const std::string& text) { report_->warn(text); });
    LifeStart start;
    start.life = life_.number();
    start.run = run_id_;
    start.input = reproducible_input(config_, origins_);
    start.data = data_text_;
    start.data_hash = data_hash(data_text_);
    if (tokenizer_.hash != 0) start.tokenizer_hash = tokenizer_text(tokenizer_.hash);
    start.first_step = trainer_->progress().steps;
    start.matmul_rate = basis_.matmul.flops_per_second;
    start.vendor_peak = report_->peak_rate();
    start.emulated = emulates(config_.emulate);
    describe_plan(trainer_->plan(), start);
    if (speeds_) describe_links(*speeds_, start);
    provenance_->begin(*machine_, std::move(start), trainer_->predicted_step());
  }

  void keep_plan() const {
    if (world_.rank() != 0) return;
    if (speeds_) write_text_durably(config_.run.dir + "/speeds.json", speeds_->text());
    keep_plan_file(config_.run.dir, trainer_->progress().steps, trainer_->plan());
  }

  [[nodiscard]] std::string new_run_id() const {
    const auto now = static_cast<std::uint64_t>(std::time(nullptr));
    return broadcast_text(world_, fmt::format("{}-{:x}", config_.run.name, now));
  }

  void loop() {
    last_save_time_ = PhaseClock::now();
    while (!trainer_->ended() && !paused() && decision_.stop == kNoFlag) {
      trainer_->start_step(wishes());
      report_->expect(trainer_->predicted_step());
      const index_t done = trainer_->progress().steps;
      if (steps_run_++ == 0) keep_choices();
      const bool save_now = due_at(done) || trainer_->ended() || paused();
      const Replan* replan = replan_after(done);
      const bool wait =
          save_now || evaluates_after(done) || replan != nullptr || report_->bounds_trace(done);
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
    stopped_ = decision_.stop != kNoFlag && !trainer_->ended();
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
           (replan_after(trainer_->progress().steps + 1) != nullptr ? kReshapeDue : kNoFlag);
  }

  [[nodiscard]] bool due_at(index_t step) const {
    return config_.checkpoint.every_steps > 0 && step % config_.checkpoint.every_steps == 0;
  }

  [[nodiscard]] const Replan* replan_after(index_t step) const {
    for (const Replan& replan : replans_)
      if (replan.step == step) return &replan;
    return nullptr;
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
      keep_plan();
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
    try {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      machine_->ops().save_choices(path);
    } catch (const std::exception& error) {
      report_->warn(fmt::format("engine choices are not kept: {}", error.what()));
    }
  }

  [[nodiscard]] bool evaluates_after(index_t step) const {
    const bool last = step == trainer_->progress().steps && trainer_->ended();
    return !texts_.validation.empty() &&
           (last || (config_.eval.every_steps > 0 && step % config_.eval.every_steps == 0));
  }

  // Reads and writes down what has been done, until at most `left` steps await their report.
  void take_reports(index_t left) {
    while (trainer_->pending() > left) {
      const StepReport step = trainer_->finish_step();
      std::vector<NamedLoss> valid;
      // Who asks to stop does not wait for an evaluation.
      const bool last = trainer_->ended() && step.step == trainer_->progress().steps;
      if (evaluates_after(step.step) && (last || decide(step.flags).stop == kNoFlag)) {
        // The last evaluation reads all of the text: who ends the job meanwhile loses no step.
        if (last) save(true);
        valid = evaluate(last);
      }
      report_->step(*trainer_, step, valid);
      {
        const PhaseClock::Scope scope(machine_->clock(), "checkpoint");
        saving_->step_done(step.step, step.flags, !step.skipped);
      }
      last_words_.set_progress(step.step, last_saved());
      stopping_->step_done(step, trainer_->steps());
      for (const std::string& text : stopping_->take_warnings()) report_->warn(text);
      life_.step_done();
      provenance_->step_done(trainer_->ended() && step.step == trainer_->progress().steps);
      if (++steps_reported_ == 1) {
        start_clock_.mark("first step");
        report_->note(start_clock_.text());
      }
      for (std::size_t n = 0; n < valid.size(); ++n) report_valid(n, valid[n]);
      balancing_->observe(step, trainer_->plan());
      if (const std::string text = balancing_->hindrance(); !text.empty()) report_->note(text);
      const Decision now = decide(step.flags);
      decision_.stop |= now.stop;
      decision_.report = decision_.report || now.report;
      decision_.checkpoint = decision_.checkpoint || now.checkpoint;
      decision_.reshape = decision_.reshape || now.reshape;
    }
  }

  std::vector<NamedLoss> evaluate(bool whole) {
    std::vector<NamedLoss> losses;
    for (const ValidationText& text : texts_.validation) {
      const index_t available = text.source->samples();
      index_t sequences = config_.eval.batches * trainer_->plan().sequences();
      sequences = whole ? available : std::min(sequences, available);
      report_->expect(trainer_->predicted_evaluation(sequences));
      losses.push_back({text.name, trainer_->evaluate(*text.source, sequences)});
    }
    return losses;
  }

  void report_valid(std::size_t set, const NamedLoss& valid) {
    const TokenSource& tokens = texts_.validation[set].source->tokens();
    const bool known = set < tokenizer_.scores_valid.size() && tokenizer_.scores_valid[set];
    const double bytes = known ? tokens.bytes_per_token() : 0;
    std::string text =
        fmt::format("validation {}loss {:.4f}  perplexity {:.2f}",
                    valid.name.empty() ? "" : valid.name + " ", valid.loss, std::exp(valid.loss));
    if (bytes > 0)
      text += fmt::format("  bits per byte {:.4f}", valid.loss / std::log(2.0) / bytes);
    report_->note(text);
  }

  // On rank 0. The save that follows the stop ends the run with an error.
  [[nodiscard]] bool lost_lock() const { return lock_ != nullptr && lock_->lost(); }

  // A checkpoint that cannot be written costs a warning, not the run; at the end it costs the exit
  // code. A lock that is lost ends the run: the folder is another job's.
  void save(bool now) {
    const PhaseClock::Scope scope(machine_->clock(), "checkpoint");
    saving_->save(state_to_save(), trainer_->parts_to_save(), now, trainer_->ended());
    last_save_time_ = PhaseClock::now();
  }

  [[nodiscard]] CheckpointState state_to_save() const {
    CheckpointState state;
    state.lineage = lineage_;
    state.step = trainer_->progress().steps;
    state.run_id = run_id_;
    state.texts = trainer_->texts();
    state.texts["input"] = resolved_text(config_, origins_);
    state.texts[kPlanInputText] =
        from_->plan_input().empty() ? state.texts["input"] : from_->plan_input();
    if (speeds_) state.texts[kSpeedsText] = speeds_->text();
    state.texts[kBasisText] = basis_.text();
    state.texts[kDataText] = data_text_;
    if (tokenizer_.hash != 0) state.texts[kTokenizerText] = tokenizer_text(tokenizer_.hash);
    return state;
  }

  // Where all of it was taken over, what was loaded is what was saved.
  [[nodiscard]] std::string digest_note(const std::string& digest) const {
    std::string text = "digest of the state " + digest;
    if (!from_->info()) return text;
    const auto& texts = from_->info()->state.texts;
    const auto saved = texts.find(kDigestText);
    if (saved == texts.end() || !is_digest(saved->second)) return text;
    return text + (saved->second == digest ? ", as in the checkpoint"
                                           : "; that in the checkpoint is " + saved->second +
                                                 ": not all of it was taken over");
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
                       }});
    const std::vector<TensorPart> parts = trainer_->parts_to_save();
    const std::string digest = whole_digest(world_, digest_of_parts(parts, Trainer::kPrivateState));
    report_->note(digest_note(digest));
    const bool on_gpu = machine_->choice().gpu >= 0;
    saving_->prepare(parts, snapshot_shortage(world_, trainer_->plan(), parts, on_gpu, room_));
  }

  /// The input asks for no more than the checkpoint has.
  int nothing_left() {
    const std::string reason = fmt::format(
        "nothing is left to do: the checkpoint is at step {} and the run ends at step {}",
        trainer_->progress().steps, trainer_->steps());
    report_->note(reason);
    if (world_.rank() == 0) record_end(ExitCode::done, reason);
    return static_cast<int>(ExitCode::done);
  }

  int finish() {
    all_or_none(world_, [&] {
      if (lost_lock()) lock_->check();
    });
    std::string reason = stopped_  ? Stopping::reason(decision_.stop)
                         : paused_ ? pause_reason()
                                   : "all steps done";
    if (stopped_ && lost_lock())
      reason = "stopped because the lock of the run folder was lost for some time; it is back";
    report_->finish(reason);
    if (stopped_) end_.stopped(decision_.stop);
    if (last_saved() != trainer_->progress().steps)
      throw AgreedError(ExitCode::io,
                        "the last checkpoint could not be written; see the warnings above");
    if (paused_) end_.paused();
    const ExitCode code = stopped_ || paused_ ? ExitCode::retry : ExitCode::done;
    provenance_->end(world_, report_->totals(), static_cast<int>(code), reason,
                     trainer_->plan().hash());
    if (world_.rank() == 0) record_end(code, reason);
    return static_cast<int>(code);
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
    if (world_.rank() == 0) record_end(ExitCode::retry, pause_reason());
    return static_cast<int>(ExitCode::retry);
  }

  /// Also before there is a log.
  void warn(const std::string& text) {
    if (report_) return report_->warn(text);
    std::fputs(("transformer3d: warning: " + text + "\n").c_str(), stderr);
  }

  Communicator& world_;
  const CommandLine& command_;
  LastWords last_words_;
  Life life_{[this](const std::string& text) { warn(text); }};
  std::unique_ptr<PeerWatch> watch_;  // until everything below has ended
  std::unique_ptr<RunLock> lock_;     // rank 0's; given back when everything else has ended
  Origins origins_;
  Config config_;
  JobEnd end_{config_, world_.rank(), life_, [this](const std::string& text) {
                if (report_) report_->warn(text);
              }};
  index_t began_at_ = -1;  // step of the checkpoint that this life goes on from
  Decision decision_;      // of the steps whose reports have been read
  bool stopped_ = false;   // it came to a stop before the end
  bool paused_ = false;    // at run.pause_at
  std::unique_ptr<Stopping> stopping_;
  double last_save_time_ = 0;
  index_t steps_run_ = 0;  // by this process
  index_t steps_reported_ = 0;
  StartClock start_clock_;
  std::optional<InitSource> init_source_;  // of a run that begins with weights
  std::string run_id_;
  Lineage lineage_;
  std::unique_ptr<Continuation> from_;
  std::vector<std::string> early_notes_, plan_notes_, input_warnings_;
  std::string memory_warning_;  // what the plan lacks of memory that is free now
  std::vector<Replan> replans_;
  OpenMesh open_mesh_;
  Texts texts_;
  RunTokenizer tokenizer_;
  std::string data_text_, data_change_;  // data_identity.hpp
  std::unique_ptr<Machine> machine_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<JobReport> report_;
  std::unique_ptr<Provenance> provenance_;
  std::unique_ptr<Balancing> balancing_;
  std::unique_ptr<Saving> saving_;
  MemoryRoom room_;
  std::optional<Speeds> speeds_;  // that the plan was made from
  PlanBasis basis_;               // what else it was
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
    if (!agreed || world.rank() == 0) job.record_end(cause.code(), cause.what(), !agreed);
    last_act = job.last_act();
    if (!agreed) {
      job.end_alone();
      if (last_act) last_act();  // before MPI_Abort
    }
    throw;
  }
}

}  // namespace t3d
