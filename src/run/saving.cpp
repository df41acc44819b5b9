#include "run/saving.hpp"

#include "comm/agree.hpp"
#include "core/phase_clock.hpp"
#include "core/run_event.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/checkpoint/state_digest.hpp"
#include "io/lock/lock_owner.hpp"
#include "io/lock/run_lock.hpp"
#include "run/setup.hpp"
#include "train/step/state_parts.hpp"
#include "train/step/trainer.hpp"

namespace t3d {

Saving::Saving(Communicator& world, const Config& config, const RunLock* lock, index_t saved,
               Hearer hearer, const FileService* logs)
    : world_(world),
      config_(config),
      lock_(lock),
      hearer_(std::move(hearer)),
      logs_(logs),
      // The other ranks wait for as long as files may take: rank 0 is to be back before.
      line_seconds_(config.debug.io_seconds / 2),
      last_saved_(saved) {}

void Saving::prepare(const std::vector<TensorPart>& parts, const std::string& shortage) {
  if (config_.checkpoint.asynchronous == AsyncRule::off) return;
  if (config_.checkpoint.asynchronous == AsyncRule::automatic) {
    double bytes = 0;
    for (const double of_rank : all_gather_numbers(world_, static_cast<double>(bytes_of(parts))))
      bytes += of_rank;
    if (bytes < static_cast<double>(kWorthProcess)) return;
  }
  prepare_background(parts, shortage);
}

void Saving::prepare_background(const std::vector<TensorPart>& parts, const std::string& shortage) {
  try {
    if (!shortage.empty()) throw AgreedError(ExitCode::unavailable, shortage);
    if (!background_)
      background_ = std::make_unique<BackgroundSave>(world_, options(), Trainer::kPrivateState,
                                                     config_.debug.io_seconds);
    background_->prepare(parts);
  } catch (const AgreedError& error) {
    background_.reset();
    hearer_.note(fmt::format("the steps wait for checkpoints: {}", error.what()));
  }
}

void Saving::save(const CheckpointState& state, const std::vector<TensorPart>& parts, bool now,
                  bool last) {
  settle();
  if (last_saved_ == state.step) return;
  lineage_ = state.lineage;
  if (background_) prepare_background(parts, "");
  if (!background_) return save_in_foreground(state, parts, last);
  try {
    background_->begin(state, parts);
    if (logs_ != nullptr) hearer_.sync_lines();
    if (logs_ != nullptr) lines_ = logs_->newest();
    lines_since_ = PhaseClock::now();
    hearer_.begun();
    look_after(state.step);
    if (!now) return;
    wait_for_lines();
    end(background_->settle(kept(last)));
  } catch (const AgreedError& error) {
    if (error.code() == ExitCode::diverged) throw;
    failed(state.step, error);
  }
  // Whoever waits has no other checkpoint to come; the state is still there.
  if (now && last_saved_ != state.step) save_in_foreground(state, parts, last);
}

void Saving::step_done(index_t step, unsigned flags, bool proven) {
  if (unproven_ && proven && !under_way() && step > last_saved_) {
    remove_old(config_.checkpoint.keep);
    unproven_ = false;
  }
  if (!under_way()) return;
  gone_on_ = gone_on_ || (proven && step > background_->pending());
  if (step <= knows_nothing_ || (flags & kSaving) != 0) return;
  if (const auto outcome = background_->advance(kept(gone_on_))) return end(*outcome);
  look_after(step);  // another process has been started
}

// A rank may have begun steps beyond `step` already, whose flags are from before; how many differs
// between GPUs and CPUs, but all must take the same steps for later ones.
void Saving::look_after(index_t step) {
  knows_nothing_ = step + static_cast<index_t>(Trainer::kMostPending) - 1;
}

void Saving::settle() {
  if (!under_way()) return;
  wait_for_lines();
  end(background_->settle(kept(gone_on_)));
}

unsigned Saving::flags() {
  if (!background_ || !under_way()) return kNoFlag;
  return background_->busy() || !has_lines() ? kSaving : kNoFlag;
}

// A run that goes on from a checkpoint needs the lines of the steps before. What takes longer than
// files may is given up: the checkpoint matters more.
bool Saving::has_lines() {
  return logs_ == nullptr || logs_->is_done(lines_) ||
         PhaseClock::now() - lines_since_ > line_seconds_;
}

void Saving::wait_for_lines() {
  all_or_none(*checkpoint_group(world_), [&] {
    if (logs_ != nullptr && !logs_->wait(lines_, line_seconds_))
      hearer_.warn("a checkpoint is published before the lines of its steps are in the logs");
  });
}

// Not in the step, and nobody waits: a file system may take long to remove.
void Saving::remove_old(index_t keep) {
  if (world_.rank() != 0) return;
  if (!removals_) removals_ = std::make_unique<FileService>();
  std::optional<Lease> lease;
  if (lock_ != nullptr) lease = lock_->lease();
  CheckpointOptions of_now = options();
  of_now.keep = keep;
  (void)removals_->put("removing old checkpoints of " + of_now.dir, 1,
                       [of_now, lease, lineage = lineage_, newest = newest_]() mutable {
                         of_now.lock = lease ? &*lease : nullptr;
                         apply_retention(of_now, {{}, {}, {}, lineage}, newest,
                                         lease ? lease->token : random_token());
                       });
}

void Saving::end_removal(double seconds) {
  all_or_none(*checkpoint_group(world_), [&] {
    if (!removals_ || removals_->wait(removals_->newest(), seconds)) return;
    constexpr double kHardlyAny = 0.01;
    removals_->end(kHardlyAny);
    hearer_.note(fmt::format("{} takes longer than {:.0f} s: the next life does the rest",
                             "removing old checkpoints", seconds));
  });
}

void Saving::end(const SaveOutcome& outcome) {
  gone_on_ = false;
  if (!outcome.not_finite.empty()) refuse_ruined(outcome.not_finite, outcome.step);
  hearer_.ended(outcome.fault ? 0 : outcome.work_seconds);
  if (outcome.fault) {
    failed(outcome.step, *outcome.fault);
    constexpr int kMostFailures = 2;  // in a row, whatever the reason
    if (++failures_ < kMostFailures && outcome.fault->code() != ExitCode::unavailable) return;
    background_.reset();  // no process, no memory, or somebody who always kills it
    return hearer_.note("from now on the steps wait for checkpoints");
  }
  failures_ = 0;
  published(outcome.path, outcome.step, outcome.keep == config_.checkpoint.keep);
  hearer_.note(
      fmt::format("checkpoint {} in {:.2f} s beside the steps, which waited {:.3f} s; {:.2f} s of "
                  "CPU; digest {}",
                  outcome.path, outcome.work_seconds, outcome.stall_seconds,
                  outcome.writer_cpu_seconds, outcome.digest));
}

void Saving::save_in_foreground(CheckpointState state, const std::vector<TensorPart>& parts,
                                bool last) {
  const double start = PhaseClock::now();
  all_or_none(*checkpoint_group(world_), [&] {
    if (logs_ != nullptr) hearer_.sync_lines();
    if (logs_ != nullptr) logs_->wait(logs_->newest(), line_seconds_);
    const std::string name = first_not_finite(parts);
    if (!name.empty()) refuse_ruined(name, state.step);
  });
  const std::string digest =
      whole_digest(*checkpoint_group(world_), digest_of_parts(parts, Trainer::kPrivateState));
  state.texts[kDigestText] = digest;
  try {
    const std::string path = save_checkpoint(world_, options(), state, parts, true);
    const double seconds = PhaseClock::now() - start;
    hearer_.ended(seconds);
    published(path, state.step, last);
    hearer_.note(fmt::format("checkpoint {} in {:.2f} s; digest {}", path, seconds, digest));
  } catch (const AgreedError& error) {
    failed(state.step, error);
  }
}

void Saving::published(const std::string& path, index_t step, bool proven) {
  last_saved_ = step;
  newest_ = path;
  unproven_ = !proven;
  remove_old(kept(proven));
}

// Memory may be short for a moment and is as unavailable as a lock that is somebody else's.
void Saving::failed(index_t step, const Error& error) {
  all_or_none(*checkpoint_group(world_), [&] {
    if (error.code() == ExitCode::unavailable && lock_is_gone(lock_)) throw error;
  });
  hearer_.warn(fmt::format("no checkpoint of step {}: {}", step, error.what()));
}

// The loss and the gradient of a step are looked at before its update: an update that overflows
// would be saved, and sound checkpoints removed for it.
void Saving::refuse_ruined(const std::string& name, index_t step) const {
  throw AgreedError(
      ExitCode::diverged,
      fmt::format("{} is not finite after the update of step {}, of which no checkpoint is "
                  "written. Try a smaller optimizer.lr or a longer schedule.warmup_steps",
                  name, step));
}

bool Saving::lock_is_gone(const RunLock* lock) {
  try {
    if (lock != nullptr) lock->check();
    return false;
  } catch (const Error& error) {
    return error.code() == ExitCode::unavailable;
  }
}

CheckpointOptions Saving::options() const {
  CheckpointOptions options{config_.checkpoint.dir, config_.checkpoint.ranks_per_file,
                            config_.checkpoint.keep, config_.checkpoint.major_every,
                            config_.checkpoint.verify};
  options.retain = false;
  if (lock_ != nullptr) options.lock = &lock_->lease();
  return options;
}

}  // namespace t3d
