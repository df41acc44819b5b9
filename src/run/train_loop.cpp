#include "run/train_loop.hpp"

#include <bit>
#include <filesystem>
#include <utility>

#include "comm/busy.hpp"
#include "core/phase_clock.hpp"
#include "run/job_state.hpp"

namespace t3d {

TrainLoop::TrainLoop(const Parts& parts) : parts_(parts) {}

void TrainLoop::run() {
  last_save_time_ = PhaseClock::now();
  while (!parts_.trainer.ended() && !paused() && decision_.stop == kNoFlag) {
    parts_.trainer.start_step(wishes(), parts_.balancing.decision());
    parts_.report.expect(parts_.trainer.predicted_step());
    const index_t done = parts_.trainer.progress().steps;
    if (steps_run_++ == 0) keep_choices();
    const bool save_now = due_at(done) || parts_.trainer.ended() || paused();
    const Replan* replan = parts_.state.replan_after(done);
    const bool wait = save_now || parts_.evaluation.follows(done) || replan != nullptr ||
                      parts_.report.bounds_trace(done);
    // A GPU works on this step while the report of the one before is read.
    take_reports(parts_.machine.runs_ahead() && !wait ? 1 : 0);
    if (decision_.stop != kNoFlag || decision_.checkpoint || decision_.report) take_reports(0);
    if (replicas_differ_) mend_replicas();
    if (std::exchange(decision_.report, false)) parts_.report.interim();
    if (std::exchange(decision_.reshape, false) && replan != nullptr && !parts_.trainer.ended())
      replan_as_asked(replan->plan);
    rebalance();
    if (!save_now && decision_.stop == kNoFlag && !decision_.checkpoint) continue;
    save(decision_.stop != kNoFlag || parts_.trainer.ended() || paused());
    decision_.checkpoint = false;
  }
  stopped_ = decision_.stop != kNoFlag && (!parts_.trainer.ended() || lacks_evaluation_);
  // Asked to stop at the same step: started again in the same size, it sees that it is to pause.
  paused_ = paused() && !parts_.trainer.ended() && !stopped_;
}

// What this rank would like after the next step. The clock of rank 0 decides for all; what is due
// by it does not make the steps wait for the checkpoint before.
unsigned TrainLoop::wishes() const {
  const double minutes = parts_.config.checkpoint.every_minutes;
  const bool due = parts_.world.rank() == 0 && minutes > 0 && !parts_.saving.under_way() &&
                   PhaseClock::now() - last_save_time_ >= 60 * minutes;
  return parts_.stopping.wishes() | parts_.saving.flags() | (lost_lock() ? kStopAsked : kNoFlag) |
         (due ? kCheckpointDue : kNoFlag) |
         (parts_.state.replan_after(parts_.trainer.progress().steps + 1) != nullptr ? kReshapeDue
                                                                                    : kNoFlag);
}

bool TrainLoop::due_at(index_t step) const {
  return parts_.config.checkpoint.every_steps > 0 &&
         step % parts_.config.checkpoint.every_steps == 0;
}

// Said the first time, the second, the fourth and so on.
void TrainLoop::mend_replicas() {
  take_reports(0);
  const MendReport done = parts_.trainer.mend_replicas();
  replicas_differ_ = false;
  parts_.report.expect(done.moved.predicted);
  if (done.text.empty()) return;
  if (std::has_single_bit(++mended_)) parts_.report.warn(done.text);
  if (!done.mended) decision_.stop |= kReplicasDiffer;
}

// Not before all ranks have said in a report that they decided so. A GPU may still work on a step
// of the old plan: its report comes first.
void TrainLoop::rebalance() {
  const std::uint64_t decision = parts_.balancing.decision();
  if (decision == 0 || agreed_ != decision || decision_.stop != kNoFlag || parts_.trainer.ended())
    return;
  take_reports(0);
  if (!parts_.balancing.due() || decision_.stop != kNoFlag) return;
  reshape(parts_.balancing.take(), parts_.balancing.reason());
  parts_.balancing.taken();
}

void TrainLoop::replan_as_asked(const Plan& plan) {
  reshape(plan, "asked for by debug.replan");
  parts_.balancing.forget();
}

void TrainLoop::reshape(const Plan& plan, const std::string& reason) {
  const Plan before = parts_.trainer.plan();
  const ReshapeReport done = parts_.trainer.reshape(plan);
  parts_.report.expect(done.predicted);
  parts_.stopping.deaf_for(done.seconds);
  try {
    const BusyScope busy("writing the plan into " + parts_.config.run.dir);
    parts_.state.keep_plan();
  } catch (const Error& error) {  // no agreement: the plan is in every checkpoint too
    parts_.report.warn(error.what());
  }
  parts_.report.reshaped(done.seconds, before, parts_.trainer.plan(), reason);
  for (const std::string& name : done.reset)
    parts_.report.warn(fmt::format("{} starts at 0 under the new plan", name));
}

// The first step has chosen the engines of a GPU.
void TrainLoop::keep_choices() {
  for (const std::string& text : parts_.machine.ops().notes()) parts_.report.warn(text);
  if (parts_.machine.ops().choices().empty()) return;
  const std::string path = parts_.machine.choices_file();
  const BusyScope busy("writing " + path);
  try {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    parts_.machine.ops().save_choices(path);
  } catch (const std::exception& error) {
    parts_.report.warn(fmt::format("engine choices are not kept: {}", error.what()));
  }
}

// Reads and writes down what has been done, until at most `left` steps await their report.
void TrainLoop::take_reports(index_t left) {
  while (parts_.trainer.pending() > left) {
    const StepReport step = parts_.trainer.finish_step();
    const bool last = parts_.trainer.ended() && step.step == parts_.trainer.progress().steps;
    // The last evaluation reads all of the text: who ends the job meanwhile loses no step.
    if (last && parts_.evaluation.follows(step.step)) save(true);
    const Evaluation::Result evaluated = evaluate_after(step, last);
    parts_.report.step(parts_.trainer, step, evaluated.losses);
    {
      const PhaseClock::Scope scope(parts_.machine.clock(), "checkpoint");
      parts_.saving.step_done(step.step, step.flags, !step.skipped);
    }
    parts_.last_words.set_progress(step.step, parts_.saving.last_saved());
    parts_.life.saved(parts_.saving.last_saved(), parts_.later);
    parts_.stopping.step_done(step, parts_.trainer.steps());
    for (const std::string& text : parts_.stopping.take_warnings()) parts_.report.warn(text);
    warn_of_lock();
    parts_.life.step_done(parts_.later);
    parts_.provenance.step_done(parts_.trainer.ended() &&
                                step.step == parts_.trainer.progress().steps);
    if (++steps_reported_ == 1) {
      parts_.start_clock.mark("first step");
      parts_.report.note_folded(parts_.start_clock.text());
    }
    parts_.evaluation.tell(evaluated);
    agreed_ = step.decision;
    replicas_differ_ = replicas_differ_ || step.replicas_differ;
    parts_.balancing.observe(step, parts_.trainer.plan());
    if (const std::string text = parts_.balancing.hindrance(); !text.empty())
      parts_.report.note(text);
    const Decision now = decide(step.flags);
    decision_.stop |= now.stop;
    if (decision_.stop != kNoFlag) parts_.saving.hurry();
    decision_.report = decision_.report || now.report;
    decision_.checkpoint = decision_.checkpoint || now.checkpoint;
    decision_.reshape = decision_.reshape || now.reshape;
  }
}

// Who asks to stop does not wait for an evaluation: it is left out, or broken off. Of the one
// after the last step a later life is told by the exit code.
Evaluation::Result TrainLoop::evaluate_after(const StepReport& step, bool last) {
  if (!parts_.evaluation.follows(step.step)) return {};
  Evaluation::Result result;
  result.stop = decide(step.flags).stop;
  if (result.stop == kNoFlag) result = parts_.evaluation.evaluate(last);
  parts_.stopping.deaf_for(result.deaf_seconds);
  decision_.stop |= result.stop;
  lacks_evaluation_ = last && result.lacks_losses();
  if (result.lacks_losses())
    parts_.report.note(
        fmt::format("no validation after step {}: {}", step.step, Stopping::reason(result.stop)));
  return result;
}

void TrainLoop::warn_of_lock() {
  if (parts_.lock == nullptr) return;
  for (const std::string& text : parts_.lock->take_warnings()) parts_.report.warn(text);
}

// A checkpoint that cannot be written costs a warning, not the run; at the end it costs the exit
// code. A lock that is lost ends the run: the folder is another job's.
void TrainLoop::save(bool now) {
  const PhaseClock::Scope scope(parts_.machine.clock(), "checkpoint");
  parts_.saving.save(parts_.state.to_save(), parts_.trainer.parts_to_save(), now,
                     parts_.trainer.ended());
  parts_.life.saved(parts_.saving.last_saved(), parts_.later);
  last_save_time_ = PhaseClock::now();
}

}  // namespace t3d
