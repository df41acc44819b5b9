#include "forecast/simulate/job_life.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "forecast/simulate/job_progress.hpp"
#include "forecast/simulate/nodes_here.hpp"
#include "forecast/simulate/random_stream.hpp"
#include "forecast/simulate/seen_rates.hpp"

namespace t3d {
namespace {

constexpr double kLongestInterval = 6 * 3600;
constexpr double kP90 = 1.2815515655446004;  // of the standard normal distribution

/// `useful`: trains. All others end at until_ (waiting: or when nodes come).
class JobLife {
 public:
  JobLife(const SimulatedJob& job, const SimulationPolicy& policy, NodeSource& source,
          const LifeDraw& draw, Timeline* timeline)
      : job_(job),
        policy_(policy),
        source_(source),
        draw_(draw),
        timeline_(timeline),
        wanted_(wanted_nodes(job, policy)),
        copies_(policy.recovery == Recovery::in_place && policy.copies > 1),
        save_seconds_(
            std::max(job.costs.checkpoint_stall_seconds, job.costs.checkpoint_write_seconds)),
        here_(job.classes),
        used_(job.classes.size()),
        steps_(draw.seed, "steps", draw.run),
        waits_(draw.seed, "queue", draw.run),
        hits_(draw.seed, "hits", draw.run),
        faults_(draw.seed, "faults", draw.run) {
    RandomStream errors(draw.seed, "error", draw.run);
    error_ = std::exp(job.step_error * errors.normal());
    if (job.step_slower > 0) error_ *= std::exp(job.step_slower * std::abs(errors.normal()));
  }

  JobOutcome run(const LifeLimits& limits) {
    job_.site.first_wait ? join_queue() : begin_life();
    while (!done_ && now_ < limits.seconds && out_.events < limits.events) {
      ++out_.events;
      next_event(limits.seconds);
    }
    out_.finished = done_;
    out_.seconds = now_;
    out_.samples = progress_.samples();
    part(LifePart::useful) = progress_.useful_seconds();
    part(LifePart::lost) = progress_.lost_seconds();
    if (timeline_ != nullptr) timeline_->end = now_;
    return out_;
  }

 private:
  // ---- time -------------------------------------------------------------------------------------

  double& part(LifePart which) { return out_.parts[static_cast<std::size_t>(which)]; }
  [[nodiscard]] bool trains() const { return phase_ == LifePart::useful; }
  [[nodiscard]] bool holds_nodes() const { return phase_ != LifePart::queue; }
  [[nodiscard]] const JobSize& size() const { return job_.sizes[static_cast<std::size_t>(size_)]; }
  [[nodiscard]] double rate() const { return size().samples_per_step / step_seconds_; }

  void advance(double to) {
    const double seconds = to - now_;
    if (trains()) {
      progress_.train(seconds, rate());
      since_checkpoint_ += seconds;
      in_step_ += seconds;
    } else {
      part(phase_) += seconds;
    }
    if (holds_nodes()) {
      out_.node_seconds += static_cast<double>(here_.count()) * seconds;
      out_.cost += here_.price_per_hour() * seconds / 3600;
      seen_.pass(seconds, here_.counts()[0] < wanted_[0]);
    }
    now_ = to;
  }

  void next_event(double limit) {
    const double end = trains() ? now_ + (job_.samples - progress_.samples()) / rate() : until_;
    const bool writing = durable_ < kNoTime;  // one checkpoint at a time
    const double save = trains() && !writing ? now_ + interval_ - since_checkpoint_ : kNoTime;
    const double look = trains() ? look_again_ : kNoTime;
    const double walltime = stop_seconds();
    const double nodes = source_.next();
    const double next = std::min({end, save, look, durable_, walltime, nodes, crash_, preempted_});
    if (next >= limit) return advance(limit);
    advance(std::max(next, now_));
    if (next == durable_) return publish();
    if (next == end) return trains() ? finish() : end_phase();
    if (next == nodes) return change_nodes();
    if (next == crash_) return crash();
    if (next == preempted_) return preempt_job();
    if (next == walltime) return reach_walltime();
    ask(false);  // a checkpoint is due, or it is time to look again
  }

  /// A checkpoint for which the job waits until it counts.
  void save() {
    enter(LifePart::checkpoint, save_seconds_);
    advance(now_ + save_seconds_);
    ++out_.checkpoints;
    progress_.snapshot();
    durable_ = kNoTime;
    publish();
  }
  void finish() {
    save();
    done_ = true;
  }

  void enter(LifePart phase, double seconds) {
    phase_ = phase;
    until_ = now_ + seconds;
    note(phase);
  }

  void note(LifePart phase) {
    if (timeline_ == nullptr) return;
    const bool idle = phase == LifePart::waiting || phase == LifePart::queue;
    const index_t used = idle ? 0 : std::accumulate(used_.begin(), used_.end(), index_t{0});
    timeline_->stretches.push_back({now_, phase, size_, here_.count(), used});
  }
  void note_lost(double from) {
    if (timeline_ != nullptr && from < now_) timeline_->lost.push_back({from, now_});
  }

  // ---- lives ------------------------------------------------------------------------------------

  void begin_life() {
    ++out_.lives;
    life_begin_ = now_;
    size_ = -1;
    must_load_ = true;
    enter(LifePart::waiting, kNoTime);
    draw_preemption();
    events_.clear();
    source_.begin(now_, events_);
    for (const NodeEvent& event : events_) here_.come(event.kind, event.change, event.born_seconds);
    draw_crash();
    ask(true);
  }

  void join_queue() {
    source_.release();
    here_.clear();
    std::fill(used_.begin(), used_.end(), 0);
    durable_ = crash_ = preempted_ = kNoTime;
    const double median = job_.site.queue_median_seconds;
    const double deviation =
        median > 0 ? std::log(std::max(job_.site.queue_p90_seconds / median, 1.0)) / kP90 : 0;
    enter(LifePart::queue, median * std::exp(deviation * waits_.normal()));
  }

  [[nodiscard]] double reserve_seconds() const {
    return save_seconds_ + (size_ >= 0 ? 2 * size().step_seconds : 0);
  }
  [[nodiscard]] double stop_seconds() const {
    if (!holds_nodes()) return kNoTime;
    const double end = life_begin_ + job_.site.walltime_seconds;
    return trains() ? end - reserve_seconds() : end;
  }
  void reach_walltime() {
    if (trains()) return ask(false);
    roll_back();  // what only the nodes' memory has
    join_queue();
  }

  /// In order: a checkpoint, then back to the queue.
  void stop() {
    trains() ? save() : roll_back();
    join_queue();
  }

  void draw_preemption() {
    const double rate = job_.site.job_preemptions_per_hour;
    preempted_ = rate > 0 ? now_ + 3600 * faults_.exponential() / rate : kNoTime;
  }
  void preempt_job() {
    save_or_lose(job_.site.grace_seconds);
    join_queue();
  }

  // ---- training ---------------------------------------------------------------------------------

  void begin_training() {
    copy_groups_.begin(std::accumulate(used_.begin(), used_.end(), index_t{0}), policy_.copies);
    in_step_ = 0;
    must_load_ = false;
    look_again_ = kNoTime;
    begin_segment();
    enter(LifePart::useful, kNoTime);
    draw_crash();
  }

  /// Step time and interval up to the next checkpoint.
  void begin_segment() {
    interval_ = policy_.interval_seconds > 0
                    ? policy_.interval_seconds
                    : best_interval(job_.costs.checkpoint_stall_seconds, roll_backs_per_hour(),
                                    std::max(save_seconds_, 1.0));
    step_seconds_ = size().step_seconds * error_ + (copies_ ? job_.costs.copy_seconds : 0);
    if (job_.step_spread > 0) {
      const double left = (job_.samples - progress_.samples()) / size().samples_per_step;
      const double steps = std::clamp(interval_ / step_seconds_, 1.0, std::max(left, 1.0));
      const double spread = job_.step_spread * steps_.normal() / std::sqrt(steps);
      step_seconds_ *= std::max(1 + spread, 0.1);
    }
  }

  void begin_checkpoint() {
    ++out_.checkpoints;
    if (timeline_ != nullptr) timeline_->checkpoints.push_back(now_);
    progress_.snapshot();
    snapshot_seconds_ = now_;
    durable_ = now_ + save_seconds_;
    since_checkpoint_ = in_step_ = 0;
    if (job_.costs.checkpoint_stall_seconds > 0)
      enter(LifePart::checkpoint, job_.costs.checkpoint_stall_seconds);
    else
      end_stall();
  }
  /// While it waits for nodes: from the copies, without a stall.
  void write_copies() {
    if (progress_.unsaved_seconds() == 0 || durable_ < kNoTime) return;
    ++out_.checkpoints;
    progress_.snapshot();
    snapshot_seconds_ = now_;
    durable_ = now_ + save_seconds_;
  }
  /// What came before or during it has not been answered.
  void end_stall() {
    begin_segment();
    enter(LifePart::useful, kNoTime);
    ask(false);
  }
  void publish() {
    progress_.publish();
    safe_seconds_ = durable_ < kNoTime ? snapshot_seconds_ : now_;
    durable_ = kNoTime;
  }

  void end_phase() {
    switch (phase_) {
      case LifePart::queue: return begin_life();
      case LifePart::checkpoint: begin_segment(); return enter(LifePart::useful, kNoTime);
      case LifePart::waiting: return ask(true);
      default: begin_training(); return ask(false);  // nodes may have come meanwhile
    }
  }

  // ---- losses -----------------------------------------------------------------------------------

  [[nodiscard]] double warning_of(std::size_t kind) const {
    return job_.classes[kind].warned ? job_.site.grace_seconds : 0;
  }

  /// Expected, of the nodes in use; only of classes whose losses come with less warning than this.
  [[nodiscard]] double losses_per_hour(double warning = kNoTime) {
    if (draw_.replayed) return warning_of(0) < warning ? seen_.losses_per_hour() : 0;
    double sum = 0;
    for (std::size_t kind = 0; kind < used_.size(); ++kind)
      if (used_[kind] > 0 && warning_of(kind) < warning)
        sum += static_cast<double>(used_[kind]) * here_.losses_per_node_hour(kind, now_);
    return sum;
  }

  [[nodiscard]] bool saved_in(double warning) const {
    return warning >= step_seconds_ + (copies_ ? 0 : save_seconds_);
  }

  /// Expected of what loads a checkpoint: the checkpoints' interval follows from it.
  double roll_backs_per_hour() {
    const double used =
        static_cast<double>(std::accumulate(used_.begin(), used_.end(), index_t{0}));
    const double needed = save_seconds_ + size().step_seconds;
    const double whole = job_.site.grace_seconds < needed ? job_.site.job_preemptions_per_hour : 0;
    if (!copies_) return whole + losses_per_hour(needed) + used * job_.site.crashes_per_node_hour;
    const double nodes = losses_per_hour();
    // Where nodes go one by one: a second loss in the same group before all copies are whole again.
    // Else those that came together show how often.
    const double apart = nodes * nodes / std::max(used, 1.0) * (policy_.copies - 1) *
                         job_.costs.reshape_seconds / 3600;
    return whole + (draw_.replayed ? seen_.roll_backs_per_hour() : apart);
  }

  void roll_back() {
    durable_ = kNoTime;
    must_load_ = true;
    since_checkpoint_ = 0;
    if (progress_.unsaved_seconds() == 0) return;
    ++out_.roll_backs;
    seen_.rolled_back();
    note_lost(safe_seconds_);
    progress_.roll_back();
  }

  /// The step under way is done again.
  void lose_step() {
    durable_ = kNoTime;
    const double seconds = std::fmod(in_step_, step_seconds_);
    note_lost(now_ - seconds);
    progress_.lose(seconds, rate());
    in_step_ = 0;
  }

  /// Of training under way, with so much warning, without copies: a checkpoint, or back.
  void save_or_lose(double warning) {
    const bool savable = trains() || phase_ == LifePart::checkpoint;
    if (!savable || warning < step_seconds_ + save_seconds_) return roll_back();
    if (trains())
      part(LifePart::checkpoint) +=
          progress_.take_back(job_.costs.checkpoint_stall_seconds, rate());
    progress_.snapshot();
    durable_ = kNoTime;
    publish();
    ++out_.checkpoints;
    must_load_ = true;
    since_checkpoint_ = 0;
  }

  /// Nodes in use are gone, or processes on them.
  void interrupt(bool copies_gone, double warning) {
    if (!copies_ || copies_gone) return save_or_lose(warning);
    if (trains() && !saved_in(warning)) lose_step();
    if (phase_ == LifePart::checkpoint) durable_ = kNoTime;
  }

  void draw_crash() {
    const double per_hour = job_.site.crashes_per_node_hour * static_cast<double>(here_.count());
    crash_ = per_hour > 0 ? now_ + 3600 * faults_.exponential() / per_hour : kNoTime;
  }
  void crash() {
    draw_crash();
    if (phase_ == LifePart::waiting || phase_ == LifePart::queue) return;
    interrupt(false, 0);
    policy_.recovery == Recovery::requeue ? join_queue() : ask(true);
  }

  /// True when one of the nodes in use is lost. Which node it is of those here is a matter of
  /// chance.
  bool lose_nodes(const NodeEvent& event, bool& copies_gone) {
    bool hit = false;
    index_t here = here_.counts()[event.kind];
    for (index_t node = 0; node < -event.change; ++node, --here) {
      ++out_.losses;
      index_t& used = used_[event.kind];
      const bool in_use =
          used == here || (used > 0 && hits_.uniform() * static_cast<double>(here) < double(used));
      if (!in_use) continue;
      --used;
      hit = true;
      if (copies_ && copy_groups_.lose(hits_.uniform())) copies_gone = true;
    }
    here_.go(event.kind, -event.change, event.born_seconds);
    return hit;
  }

  void change_nodes() {
    events_.clear();
    source_.take(events_);
    const bool requeue = policy_.recovery == Recovery::requeue;
    bool hit = false, gone = false, came = false, lost = false;
    double warning = kNoTime;  // the shortest
    for (const NodeEvent& event : events_) {
      if (event.change < 0) {
        lost = true;
        if (!lose_nodes(event, gone) && !requeue) continue;
        hit = true;
        warning = std::min(warning, warning_of(event.kind));
      } else {
        here_.come(event.kind, event.change, event.born_seconds);
        seen_.came(event.change);
        came = true;
      }
    }
    if (lost) seen_.lost();
    draw_crash();
    if (hit && requeue) {
      save_or_lose(warning);
      return join_queue();
    }
    if (hit) {
      interrupt(gone, warning);
      return ask(true);
    }
    if (came && trains()) return ask(false);
    if (came && phase_ == LifePart::waiting) return ask(true);
    note(phase_);
  }

  // ---- decisions --------------------------------------------------------------------------------

  [[nodiscard]] double next_return_seconds() const {
    if (draw_.replayed)
      return here_.counts()[0] < wanted_[0] ? seen_.next_return_seconds() : kNoTime;
    double per_second = 0;
    for (std::size_t kind = 0; kind < wanted_.size(); ++kind)
      per_second += static_cast<double>(wanted_[kind] - here_.counts()[kind]) /
                    job_.classes[kind].return_seconds;
    return per_second > 0 ? 1 / per_second : kNoTime;
  }

  SizeQuestion question(bool interrupted) {
    SizeQuestion q;
    q.sizes = job_.sizes;
    q.here = here_.counts();
    q.current = size_;
    q.interrupted = interrupted;
    q.samples_left = job_.samples - progress_.samples();
    q.sizing = policy_.sizing;
    q.losses_per_hour = losses_per_hour();
    q.next_return_seconds = next_return_seconds();
    q.reshape_seconds = must_load_ ? job_.costs.restart_seconds : job_.costs.reshape_seconds;
    q.same_size_seconds = must_load_ ? job_.costs.restart_seconds : job_.costs.spare_seconds;
    // What is replayed is all that there is: the queue has no other nodes.
    if (!draw_.replayed)
      q.requeue_seconds = job_.site.queue_median_seconds + job_.costs.restart_seconds;
    q.left_seconds = life_begin_ + job_.site.walltime_seconds - now_;
    q.reserve_seconds = interrupted ? 0 : reserve_seconds();
    q.save_seconds = save_seconds_;
    q.copies = copies_;
    q.unsaved_seconds = progress_.unsaved_seconds();
    q.since_checkpoint_seconds = since_checkpoint_;
    q.interval_seconds = durable_ < kNoTime ? kNoTime : interval_;
    return q;
  }

  void ask(bool interrupted) {
    SizeQuestion q = question(interrupted);
    // The clock reaches what is due but for rounding.
    if (now_ + 1e-9 * (1 + now_) >= stop_seconds()) q.left_seconds = 0;
    if (q.since_checkpoint_seconds * (1 + 1e-9) + 1e-9 >= q.interval_seconds)
      q.since_checkpoint_seconds = q.interval_seconds;
    follow(decide_size(q));
  }

  void follow(const SizeDecision& decision) {
    switch (decision.action) {
      case SizeAction::go_on: look_again_ = now_ + decision.look_again_seconds; return note(phase_);
      case SizeAction::checkpoint: return begin_checkpoint();
      case SizeAction::stop: return stop();
      case SizeAction::wait:
        // With copies the nodes that are left hold the state: losing them counts.
        if (!copies_ || must_load_)
          std::fill(used_.begin(), used_.end(), 0);
        else
          write_copies();
        return enter(LifePart::waiting, std::max(decision.look_again_seconds, 1.0));
      default: break;
    }
    const bool same = decision.action == SizeAction::use_spare;
    size_ = decision.size;
    used_ = size().nodes;
    durable_ = kNoTime;
    ++(must_load_ ? out_.restarts : out_.reshapes);
    if (must_load_) return enter(LifePart::restart, job_.costs.restart_seconds);
    enter(LifePart::reshape, same ? job_.costs.spare_seconds : job_.costs.reshape_seconds);
  }

  const SimulatedJob& job_;
  const SimulationPolicy& policy_;
  NodeSource& source_;
  LifeDraw draw_;
  Timeline* timeline_;
  std::vector<index_t> wanted_;
  bool copies_;
  double save_seconds_;
  double error_ = 1;

  NodesHere here_;
  std::vector<index_t> used_;
  CopyGroups copy_groups_;
  JobProgress progress_;
  SeenRates seen_;
  RandomStream steps_, waits_, hits_, faults_;
  std::vector<NodeEvent> events_;
  JobOutcome out_;

  double now_ = 0, life_begin_ = 0, until_ = 0, look_again_ = kNoTime;
  LifePart phase_ = LifePart::queue;
  int size_ = -1;
  bool must_load_ = true, done_ = false;
  double step_seconds_ = 1, in_step_ = 0, interval_ = kNoTime, since_checkpoint_ = 0;
  double durable_ = kNoTime, snapshot_seconds_ = 0, safe_seconds_ = 0;
  double crash_ = kNoTime, preempted_ = kNoTime;
};

}  // namespace

std::vector<index_t> wanted_nodes(const SimulatedJob& job, const SimulationPolicy& policy) {
  std::vector<index_t> wanted(job.classes.size());
  for (std::size_t kind = 0; kind < wanted.size(); ++kind) {
    for (const JobSize& size : job.sizes) wanted[kind] = std::max(wanted[kind], size.nodes[kind]);
    if (wanted[kind] > 0) wanted[kind] += policy.spares;
    if (job.classes[kind].nodes > 0) wanted[kind] = std::min(wanted[kind], job.classes[kind].nodes);
  }
  return wanted;
}

JobOutcome simulate_life(const SimulatedJob& job, const SimulationPolicy& policy,
                         NodeSource& source, const LifeDraw& draw, const LifeLimits& limits,
                         Timeline* timeline) {
  return JobLife(job, policy, source, draw, timeline).run(limits);
}

double best_interval(double stall_seconds, double roll_backs_per_hour, double least_seconds) {
  const double best = roll_backs_per_hour > 0
                          ? std::sqrt(2 * stall_seconds * 3600 / roll_backs_per_hour)
                          : kLongestInterval;
  return std::clamp(best, std::min(least_seconds, kLongestInterval), kLongestInterval);
}

}  // namespace t3d
