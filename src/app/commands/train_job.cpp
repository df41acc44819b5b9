// The main job: train from an input file, from the newest checkpoint on, until the steps are done
// or somebody asks to stop. Policy only; the arithmetic is in train/.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "app/commands/commands.hpp"
#include "app/commands/job_report.hpp"
#include "app/commands/rank_plan.hpp"
#include "app/commands/setup.hpp"
#include "app/config/config_schema.hpp"
#include "app/config/defaults.hpp"
#include "app/stop_signal.hpp"
#include "comm/agree.hpp"
#include "data/tokenizer.hpp"
#include "io/lock/run_lock.hpp"
#include "io/log/run_log.hpp"
#include "train/step/trainer.hpp"

namespace t3d {
namespace {

// On rank 0. Asked to stop while an owner without a sign of life is waited for: stops.
std::unique_ptr<RunLock> lock_folders(const std::vector<std::string>& folders,
                                      const std::string& run) {
  double last_word = PhaseClock::now();
  return std::make_unique<RunLock>(folders, run, [&](const std::string& text) {
    if (stop_signal() != 0)
      throw_error(ExitCode::unavailable, "asked to stop while waiting: {}", text);
    if (PhaseClock::now() - last_word < 5) return;
    last_word = PhaseClock::now();
    fmt::print(stderr, "transformer3d: waiting: {}\n", text);
  });
}

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
    all_or_none(world_, [&] {
      source_ = open_corpus(config_.data.train, config_, config_.data.shuffle);
      // Validation reads its text in order: the same samples at every evaluation.
      if (!config_.data.valid.empty()) valid_ = open_corpus(config_.data.valid, config_, false);
      steps_ = planned_steps(config_);
    });
    all_or_none(world_, [&] {
      if (world_.rank() == 0) prepare_folder();
    });
    machine_ = std::make_unique<Machine>(world_, config_, mesh_shape(config_));
    all_or_none(world_, [&] { check_memory(); });
    all_or_none(world_,
                [&] { trainer_ = std::make_unique<Trainer>(*machine_, config_, steps_, source_); });
  }

  // A GPU's memory has no swap: refused with the arithmetic now rather than in the middle of a
  // step.
  void check_memory() const {
    if (machine_->choice().gpu < 0) return;
    const MeshShape& mesh = machine_->mesh().shape();
    Config config = config_;
    config.mesh.device =
        machine_->choice().gpus < mesh.ranks() ? DeviceRule::mixed : DeviceRule::cuda;
    const RankPlan plan = simulate_rank(config, mesh, mesh.coord_of(world_.rank()));
    const std::string shortage =
        memory_shortage(plan, machine_->device(), machine_->choice().sharers);
    if (!shortage.empty())
      throw_error(ExitCode::unavailable, "too little GPU memory: {}", shortage);
  }

  // Fails now rather than after hours if nothing can be written. Nothing is written before the
  // folders are locked.
  void prepare_folder() {
    const std::vector<std::string> folders{config_.run.dir, config_.checkpoint.dir};
    for (const std::string& folder : folders) {
      std::error_code error;
      std::filesystem::create_directories(folder, error);
      if (error) throw_error(ExitCode::io, "cannot create {}: {}", folder, error.message());
    }
    lock_ = lock_folders(folders, config_.run.name);
    const std::string model = source_->tokens().tokenizer_model();
    if (model.empty()) return;
    const std::string path = config_.run.dir + "/tokenizer.model";
    std::ofstream file(path, std::ios::binary);
    file.write(model.data(), static_cast<std::streamsize>(model.size()));
    file.close();
    if (!file) throw_error(ExitCode::io, "cannot write {}", path);
  }

  void restart() {
    std::vector<std::string> notes;
    const auto warn = [&](const std::string& text) { notes.push_back(text); };
    std::optional<CheckpointInfo> info;
    std::vector<TensorPart> parts = trainer_->parts();
    const std::string& wish = config_.checkpoint.restart;
    if (wish == "auto") {
      // The model first: a wrong shape would only name a tensor.
      if (const auto newest =
              find_checkpoint(world_, config_.checkpoint.dir, [](const std::string&) {}))
        all_or_none(world_, [&] { check_same_model(*newest); });
      info = load_newest(world_, config_.checkpoint.dir, parts, warn, Trainer::kPrivateState);
    } else if (wish != "never") {
      info = open_checkpoint(world_, wish);
      all_or_none(world_, [&] { check_same_model(*info); });
      load_checkpoint(world_, wish, parts, Trainer::kPrivateState);
    }
    if (info) {
      trainer_->set_steps_done(info->state.step);
      trainer_->loss_scale().set(info->state.texts["loss_scale"]);
      trainer_->state_loaded();
      run_id_ = info->state.run_id;
      resumed_from_ = info->path;
    } else {
      run_id_ = new_run_id();
    }
    lineage_ = next_lineage(world_, config_.checkpoint.dir, info, warn);
    if (lock_) lock_->set_run(run_id_);
    last_saved_ = info ? info->state.step : -1;
    all_or_none(world_, [&] {
      report_ = std::make_unique<JobReport>(world_, *machine_, config_, steps_,
                                            trainer_->steps_done(), command_.verbosity < 0);
      report_->write_resolved(resolved_text(config_, origins_));
    });
    for (const std::string& text : notes) report_->warn(text);
    if (info)
      report_->note(fmt::format("resumed from {} at step {}", resumed_from_, info->state.step));
    if (const std::string text = placement_warning(world_); !text.empty()) report_->warn(text);
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
    while (trainer_->steps_done() < steps_ && !stop_) {
      report_->counted_step(
          [&] { trainer_->start_step(stop_signal() != 0 || lost_lock() ? kStopSignal : kNoStop); },
          trainer_->predicted_step());
      const index_t done = trainer_->steps_done();
      if (steps_run_++ == 0) keep_choices();
      const bool save_now = due(done) || done == steps_;
      // A GPU works on this step while the report of the one before is read.
      take_reports(machine_->runs_ahead() && !save_now && !evaluates_after(done) ? 1 : 0);
      if (stop_) take_reports(0);
      if (!save_now && !stop_) continue;
      save();
      last_save_time_ = PhaseClock::now();
    }
    stopped_ = stop_ && trainer_->steps_done() < steps_;
  }

  // The first step has chosen the engines of a GPU.
  void keep_choices() {
    for (const std::string& text : machine_->ops().notes()) report_->warn(text);
    if (machine_->ops().choices().empty()) return;
    const std::string path = choices_file(config_, world_.rank());
    try {
      std::filesystem::create_directories(std::filesystem::path(path).parent_path());
      machine_->ops().save_choices(path);
    } catch (const std::exception& error) {
      report_->warn(fmt::format("engine choices are not kept: {}", error.what()));
    }
  }

  [[nodiscard]] bool evaluates_after(index_t step) const {
    return valid_ != nullptr && (step == steps_ || (config_.eval.every_steps > 0 &&
                                                    step % config_.eval.every_steps == 0));
  }

  // Reads and writes down what has been done, until at most `left` steps await their report.
  void take_reports(index_t left) {
    while (trainer_->pending() > left) {
      const StepReport step = trainer_->finish_step();
      std::optional<double> valid;
      if (evaluates_after(step.step)) valid = evaluate(step.step == steps_);
      report_->step(step, valid);
      if (valid) report_valid(*valid);
      stop_ = stop_ || step.stop_requests != kNoStop;
    }
  }

  double evaluate(bool whole) {
    const index_t available = valid_->ledger().samples();
    index_t sequences = config_.eval.batches * config_.batch.sequences;
    sequences = whole ? available : std::min(sequences, available);
    return report_->counted([&] { return trainer_->evaluate(*valid_, sequences); },
                            trainer_->predicted_evaluation(sequences));
  }

  void report_valid(double loss) {
    const double bytes = valid_->tokens().bytes_per_token();
    std::string text =
        fmt::format("validation loss {:.4f}  perplexity {:.2f}", loss, std::exp(loss));
    if (bytes > 0) text += fmt::format("  bits per byte {:.4f}", loss / std::log(2.0) / bytes);
    report_->note(text);
  }

  // The clock of rank 0 decides for all.
  [[nodiscard]] bool due(index_t step) const {
    if (config_.checkpoint.every_steps > 0 && step % config_.checkpoint.every_steps == 0)
      return true;
    if (config_.checkpoint.every_minutes <= 0) return false;
    std::int32_t due =
        PhaseClock::now() - last_save_time_ >= 60 * config_.checkpoint.every_minutes ? 1 : 0;
    world_.broadcast({&due, DType::i32, 1, 1}, 0).wait_host();
    return due != 0;
  }

  // On rank 0. The save that follows the stop ends the run with an error.
  [[nodiscard]] bool lost_lock() const { return lock_ != nullptr && lock_->lost(); }

  // A checkpoint that cannot be written costs a warning, not the run; at the end it costs the exit
  // code. A lock that is lost ends the run: the folder is another job's.
  void save() {
    if (last_saved_ == trainer_->steps_done()) return;
    const PhaseClock::Scope scope(machine_->clock(), "checkpoint");
    CheckpointOptions options{config_.checkpoint.dir, config_.checkpoint.ranks_per_file,
                              config_.checkpoint.keep, config_.checkpoint.major_every,
                              config_.checkpoint.verify};
    options.lock = lock_.get();
    CheckpointState state;
    state.lineage = lineage_;
    state.step = trainer_->steps_done();
    state.run_id = run_id_;
    state.texts["input"] = resolved_text(config_);
    state.texts["mesh"] = machine_->mesh().shape().describe();
    state.texts["loss_scale"] = trainer_->loss_scale().text();
    state.texts["samples"] = std::to_string(state.step * config_.batch.sequences);
    const double start = PhaseClock::now();
    try {
      const std::string path =
          save_checkpoint(world_, options, state, trainer_->parts_to_save(), true);
      report_->note(fmt::format("checkpoint {} in {:.2f} s", path, PhaseClock::now() - start));
      last_saved_ = state.step;
    } catch (const AgreedError& error) {
      if (error.code() == ExitCode::unavailable) throw;
      report_->warn(fmt::format("no checkpoint of step {}: {}", state.step, error.what()));
    }
  }

  int finish() {
    all_or_none(world_, [&] {
      if (lost_lock()) lock_->check();
    });
    const std::string reason = stopped_ ? "asked to stop by a signal" : "all steps done";
    report_->finish(reason);
    if (last_saved_ != trainer_->steps_done())
      throw AgreedError(ExitCode::io,
                        "the last checkpoint could not be written; see the warnings above");
    return static_cast<int>(stopped_ ? ExitCode::retry : ExitCode::done);
  }

  Communicator& world_;
  const CommandLine& command_;
  std::unique_ptr<RunLock> lock_;  // rank 0's; given back when everything else has ended
  Origins origins_;
  Config config_;
  index_t steps_ = 0, last_saved_ = -1;
  bool stop_ = false, stopped_ = false;  // somebody asks to stop; it came to that
  double last_save_time_ = 0;
  index_t steps_run_ = 0;  // by this process
  std::string run_id_, resumed_from_;
  Lineage lineage_;
  std::shared_ptr<BatchSource> source_, valid_;
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
