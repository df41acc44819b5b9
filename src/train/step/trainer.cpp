#include "train/step/trainer.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "comm/cost.hpp"
#include "core/error.hpp"
#include "core/thread_clock.hpp"
#include "core/tracer.hpp"
#include "device/ranges.hpp"
#include "ops/flat_gain.hpp"
#include "train/step/agreement.hpp"
#include "train/step/reshape.hpp"
#include "train/step/state_parts.hpp"

namespace t3d {
namespace {

/// Numbers of a rank's report; loss, squares and flags travel as sums beside them.
enum ReportNumber { kOwn, kCpu, kMatmul, kAttention, kOther, kWhole, kStep, kNumbers };
static_assert(kNumbers == kReportNumbers);

QueuePart part_of(std::string_view phase) {
  if (phase == "matmul" || phase == "head") return QueuePart::matmul;
  if (phase == "attention") return QueuePart::attention;
  return phase == "orthogonalise" ? QueuePart::whole : QueuePart::other;
}

}  // namespace

class Trainer::Timing {
 public:
  Timing(Machine& machine, QueueTimer* timer) : machine_(machine), timer_(timer) {
    if (timer_ == nullptr) return;
    timer_->enter({});
    machine_.queue().set_timer(timer_);
    listener_.emplace(machine_.clock(), [timer](const char* phase) {
      timer->enter({part_of(phase), phase});
    });
  }
  Timing(const Timing&) = delete;
  Timing& operator=(const Timing&) = delete;
  ~Timing() {
    if (timer_ == nullptr) return;
    machine_.queue().set_timer(nullptr);
  }

 private:
  Machine& machine_;
  QueueTimer* timer_;
  std::optional<PhaseClock::Listener> listener_;
};

Trainer::Trainer(Machine& machine, Plan plan, const TrainOptions& options,
                 std::shared_ptr<BatchSource> source)
    : machine_(machine),
      options_(options),
      source_(std::move(source)),
      loss_scale_(options.loss_scale, plan.activation()),
      course_(options.schedule, options.length, plan.model.context, plan.sequences()) {
  form(std::move(plan));
  formation_->initialise(options.seed);
}

// Everything that depends on the plan, but the state.
void Trainer::form(Plan plan) {
  formation_ = std::make_unique<Formation>(machine_, std::move(plan), options_.optimizer);
  course_.set_sequences(this->plan().sequences());
  started_here_ = 0;
  fresh_ = true;
  Device& device = machine_.device();
  // Ranks without a place have to draw the same conclusions from Adasum's summary.
  values_ = Tensor(device, DType::f64, 1, kValues + summary_for_idle_ranks(this->plan()),
                   MemoryKind::workspace);
  clip_factor_ = Tensor(device, DType::f64, 1, 1, MemoryKind::workspace);
  host_values_ = host_array<double>(device, index_t{kMostPending} * values_.cols());
  host_sent_ = host_array<double>(device, index_t{kMostPending} * kSent);
  host_summary_.reset();
  predict_step();
  if (formation_->idle()) return;
  image_ = std::make_unique<HostImage>(formation_->context());
  const ConstTensorView summary = formation_->update().aggregation().summary();
  if (summary.data != nullptr)
    host_summary_ = host_array<double>(device, index_t{kMostPending} * summary.cols);
}

void Trainer::predict_step() {
  plan_hash_ = plan().hash();
  const TrafficTable report = idle_traffic(plan(), machine_.world().rank());
  const TrafficTable whole =
      formation_->idle() ? report : step_traffic(plan(), formation_->coord());
  const index_t leaves = std::ssize(plan().replicas) * plan().leaves_per_replica();
  const index_t counts =
      all_reduce_bytes(leaves, machine_.world().size(), machine_.world().rank(), DType::f64);
  for (const bool computes : {false, true}) {
    TrafficTable step = computes ? whole : report;
    if (source_ != nullptr && source_->ignores()) step.add(Verb::all_reduce, Group::world, counts);
    predicted_[computes][true] = step.ledger();
    step.add(times_traffic(plan()), -1);
    predicted_[computes][false] = step.ledger();
  }
}

void Trainer::run_micro_batches(std::size_t leaf, index_t targets, index_t& position,
                                const GradientSink* sink) {
  const ReplicaPlan& replica = formation_->replica();
  Transformer& model = formation_->model();
  const std::vector<index_t>& micros = replica.leaves[leaf];
  PassInfo pass;
  pass.length = plan().model.context;
  pass.step = progress_.steps;
  pass.seed = options_.seed;
  const double scale = targets > 0 ? loss_scale_.value() / static_cast<double>(targets) : 0;
  // The first step chooses engines and fills the cache of memory; recorded are the others.
  const bool record = records() && !fresh_ && machine_.queue().timer() == nullptr;
  for (std::size_t micro = 0; micro < micros.size(); ++micro) {
    const MicroBatch batch = reader_.read(*formation_, source_.get(), position, micros[micro]);
    const bool first = micro == 0, last = micro + 1 == micros.size();
    const GradientSink* listener = last ? sink : nullptr;
    const int shape = (first ? 1 : 0) + (last ? 2 : 0) + (listener != nullptr ? 4 : 0);
    if (record)
      model.train_recorded(batch, pass, scale, last, shape, listener);
    else
      model.train(batch, pass, scale, last, listener);
    position += micros[micro];
  }
  if (micros.empty()) model.train_nothing(sink);
  model.finish_gradients();
}

void Trainer::run_leaf(std::size_t leaf, index_t targets, index_t& position) {
  Update& update = formation_->update();
  const bool last = leaf + 1 == formation_->replica().leaves.size();
  const GradientSink sink{[&update](std::size_t bucket) { update.bucket_done(bucket); },
                          [&update] { update.settle(); }};
  run_micro_batches(leaf, targets, position, last ? &sink : nullptr);
  update.leaf_done(static_cast<index_t>(leaf), options_.optimizer.lr * course_.factor(progress_));
  if (!last) formation_->model().drop_gradients();
}

void Trainer::start_step(unsigned flags, std::uint64_t decision) {
  T3D_CHECK(pending_.size() < kMostPending, "{} steps await their report", pending_.size());
  Pending pending;
  pending.started = clocks();
  pending.first = fresh_;
  pending.report.measured = last_measured_;
  pending.timer = timer_of_step();
  const NamedRange range(machine_.device().ranges(), "step", progress_.steps + 1);
  const Timing timing(machine_, pending.timer);
  if (options_.slowdown.any())
    machine_.world().set_slowdown(
        options_.slowdown.factor(machine_.world().rank(), progress_.steps + 1));
  pending.report.step = progress_.steps + 1;
  pending.report.plan = changes_;
  pending.report.decision = decision;
  pending.report.tokens = plan().sequences() * plan().model.context;
  pending.report.lr = options_.optimizer.lr * course_.factor(progress_);
  pending.report.loss_scale = loss_scale_.value();
  count_targets(pending);
  computes_ = pending.report.targets > 0;
  if (computes_ && !formation_->idle()) run_step(pending);
  send_report(flags, pending);
  pending.report.skipped = !computes_ || (loss_scale_.dynamic() && !usable(pending));
  if (!formation_->idle()) {
    if (!pending.report.skipped) {
      const Context& context = formation_->context();
      const PhaseClock::Scope scope(machine_.clock(), "optimizer");
      context.ops.clip_factor(context.queue, values_.view().col_range(kSquares, 1),
                              options_.optimizer.clip_norm, clip_factor_);
      formation_->update().apply(pending.report.lr, clip_factor_);
      formation_->model().weights_changed();
    }
    formation_->model().drop_gradients();
  }
  if (pending.timer != nullptr) pending.timer->end();
  course_.advance(progress_, !pending.report.skipped);
  pending_.push_back(std::move(pending));
  ++started_here_;
  if (computes_) fresh_ = false;
}

// Each rank counts some of the samples for all: the sample ledger tells who reads what.
void Trainer::count_targets(Pending& pending) {
  Communicator& world = machine_.world();
  const bool all_count = source_ == nullptr || !source_->ignores();
  index_t position = progress_.samples;
  std::vector<double> counted, all;
  for (const ReplicaPlan& replica : plan().replicas)
    for (std::size_t leaf = 0; leaf < replica.leaves.size(); ++leaf) {
      const index_t sequences = replica.sequences_of(leaf);
      all.push_back(static_cast<double>(sequences * plan().model.context));
      counted.push_back(all_count ? all.back() : 0);
      for (index_t n = 0; n < sequences && !all_count; ++n)
        if ((position + n) % world.size() == world.rank())
          counted.back() += static_cast<double>(source_->targets(position + n, 1));
      position += sequences;
    }
  if (!all_count && world.size() > 1)
    world.all_reduce({counted.data(), DType::f64, 1, std::ssize(counted)}, ReduceOp::sum)
        .wait_host();
  std::vector<double> weights = plan().leaf_weights();
  for (std::size_t leaf = 0; leaf < counted.size(); ++leaf) {
    if (counted[leaf] < all[leaf]) weights[leaf] *= counted[leaf] / all[leaf];
    pending.targets.push_back(static_cast<index_t>(counted[leaf]));
    pending.report.targets += pending.targets.back();
  }
  pending.weights = weights;
  if (pending.report.targets == 0)
    find_any_target();
  else if (!formation_->idle())
    formation_->update().set_weights(weights);
}

// Steps without any are passed over; a corpus without any is a mistake.
void Trainer::find_any_target() {
  const index_t samples = source_->samples();
  for (index_t at = 0; at < samples && !any_target_; ++at)
    any_target_ = source_->targets(at, 1) > 0;
  if (!any_target_)
    throw AgreedError(ExitCode::config,
                      "no target of data.train counts: all are data.ignore_token, or of prompts");
}

// Up to the aggregated gradient.
void Trainer::run_step(Pending& pending) {
  Update& update = formation_->update();
  update.set_updates_done(progress_.updates);
  update.set_loss_scale(pending.report.loss_scale);
  formation_->model().clear_loss();
  index_t position = progress_.samples + plan().first_sequence(formation_->coord().d);
  const std::size_t leaves = formation_->replica().leaves.size();
  const std::size_t first = static_cast<std::size_t>(formation_->coord().d) * leaves;
  for (std::size_t leaf = 0; leaf < leaves; ++leaf)
    run_leaf(leaf, pending.targets[first + leaf], position);
  update.aggregate();
}

bool Trainer::usable(const Pending& pending) {
  pending.there->wait();
  StepReport report;
  read_summary(pending, report);
  const bool finite = std::isfinite(pending.values[kSquares]);
  const bool nothing = pending.summary != nullptr && pending.summary[adasum_summary::weights] == 0;
  if (!loss_scale_.learn(finite && report.left_out.empty()))
    throw AgreedError(ExitCode::diverged,
                      fmt::format("step {}: the gradient is not finite at any loss scale. Try a "
                                  "smaller optimizer.lr or precision.compute = \"bf16\"",
                                  pending.report.step));
  return finite && !nothing;
}

void Trainer::read_summary(const Pending& pending, StepReport& report) const {
  if (pending.summary == nullptr || source_ == nullptr) return;  // a dry run computes nothing
  const double* summary = pending.summary;
  report.gain = summary[adasum_summary::gain];
  // Exponential means already; all 0 where nothing was measured yet.
  if (summary[adasum_summary::noise] != 0) {
    report.gradient_signal = summary[adasum_summary::signal];
    report.gradient_noise = summary[adasum_summary::noise] * plan().aggregate.reference_batch;
    report.noise_sequences = noise_scale(report.gradient_signal, report.gradient_noise);
  }
  int leaf = 0;
  for (const index_t targets : pending.targets) {
    if (targets > 0 && summary[adasum_summary::columns + leaf] == 0)
      report.left_out.push_back(leaf);
    ++leaf;
  }
}

// Of mean and sum. Two squares travel with the report anyway, or nearly: so the noise scale costs
// one look at the gradients on their way out.
void Trainer::read_squares(const Pending& pending, StepReport& report) const {
  if (plan().aggregate.method == AggregateMethod::adasum || source_ == nullptr) return;
  const auto weights = adasum::leaf_weights(pending.weights.data(), std::ssize(pending.weights));
  if (weights.count < 2) return;
  double mean_square = pending.values[kSquares];
  if (plan().aggregate.method == AggregateMethod::sum) mean_square /= weights.total * weights.total;
  const adasum::NoiseEstimate estimate =
      adasum::estimate_from_squares(pending.values[kLeafSquares], mean_square, weights);
  report.gradient_signal = estimate.signal;
  report.gradient_noise = estimate.noise * plan().aggregate.reference_batch;
}

// Flags as numbers 0 or 1, so that their sums over the ranks say whether anybody wants it.
void Trainer::send_host_values(unsigned flags, const Pending& pending) {
  double* const host = host_sent_.get() + started_here_ % index_t{kMostPending} * kSent;
  host[0] = compares_replicas(pending.report.step)
                ? replica_part(digest_of_weights(), formation_->coord().d,
                               std::ssize(plan().replicas), pending.report.step)
                : 0;
  host[kMark - kReplicas] = pending.mark;
  host[kMarkSquares - kReplicas] = pending.mark * pending.mark;
  for (int bit = 0; bit < kRunFlags; ++bit)
    host[kFlags - kReplicas + bit] = (flags >> bit & 1U) != 0 ? 1 : 0;
  const TensorView there = values_.view().col_range(kReplicas, kSent);
  machine_.device().copy(there.data, host, there.bytes(), machine_.queue());
}

void Trainer::send_report(unsigned flags, Pending& pending) {
  const PhaseClock::Scope scope(machine_.clock(), "report");
  Device& device = machine_.device();
  Ops& ops = machine_.ops();
  Queue& queue = machine_.queue();
  ops.fill(queue, values_, 0);
  pending.mark = mark_of(plan_hash_, pending.report.decision, pending.report.step);
  send_host_values(flags, pending);
  pending.values = host_values_.get() + started_here_ % index_t{kMostPending} * values_.cols();
  if (computes_ && !formation_->idle()) {
    ops.add(queue, formation_->model().loss_sum_on_device(), values_.view().col_range(kLoss, 1));
    formation_->update().add_squares(values_.view().col_range(kSquares, 1));
    formation_->update().add_leaf_squares(values_.view().col_range(kLeafSquares, 1));
    const ConstTensorView summary = formation_->update().aggregation().summary();
    if (summary.data != nullptr) {
      pending.summary = host_summary_.get() + started_here_ % index_t{kMostPending} * summary.cols;
      device.copy(pending.summary, summary.data, summary.bytes(), queue);
      if (values_.cols() > kValues && formation_->mesh().world().rank() == 0)
        ops.add(queue, summary, values_.view().col_range(kValues, summary.cols));
    }
  } else if (computes_ && values_.cols() > kValues) {
    pending.summary = pending.values + kValues;
  }
  const auto ranks = static_cast<std::size_t>(machine_.world().size());
  const RankTimes& times = last_times_;
  gathers_times_ = records() ? new_times_ : pending.report.step % options_.times_every == 0;
  if (gathers_times_) {
    new_times_ = false;
    pending.own = {times.own,   times.cpu,   times.matmul, times.attention,
                   times.other, times.whole, times.step};
    pending.of_ranks.resize(ranks * kNumbers);
    const std::vector<index_t> counts(ranks, kNumbers);
    pending.gathering = machine_.world().all_gather(
        {pending.own.data(), DType::f64, 1, kNumbers},
        {pending.of_ranks.data(), DType::f64, 1, std::ssize(pending.of_ranks)}, counts);
  }
  if (ranks > 1) machine_.device_world().all_reduce(values_, ReduceOp::sum).wait(queue);
  device.copy(pending.values, values_.view().data, values_.view().bytes(), queue);
  pending.there = queue.mark();
}

void Trainer::read_report(const Pending& pending, StepReport& report) const {
  report.loss = pending.values[kLoss] / static_cast<double>(report.targets);
  report.grad_norm = std::sqrt(pending.values[kSquares]);
  for (int bit = 0; bit < kRunFlags; ++bit)
    if (pending.values[kFlags + bit] > 0) report.flags |= 1U << bit;
  report.replicas_differ = !replicas_agree(pending.values[kReplicas]);
  for (std::size_t at = 0; at < pending.of_ranks.size(); at += kNumbers) {
    const double* rank = pending.of_ranks.data() + at;
    report.times.push_back({rank[kOwn], rank[kCpu], rank[kMatmul], rank[kAttention], rank[kOther],
                            rank[kWhole], rank[kStep]});
  }
  read_summary(pending, report);
  if (!report.skipped) read_squares(pending, report);
}

Trainer::Clocks Trainer::clocks() {
  Communicator& world = machine_.device_world();
  Clocks now;
  now.wall = PhaseClock::now();
  now.cpu = thread_cpu_seconds();
  for (const auto& [axis, seconds] : world.wait_seconds()) now.waited += seconds;
  now.waited_cpu = world.wait_cpu_seconds();
  now.slept = paused_seconds();
  now.emulated_cpu = emulated_cpu_seconds();
  for (const auto& [phase, seconds] : machine_.clock().seconds()) {
    switch (part_of(phase)) {
      case QueuePart::matmul: now.matmul += seconds; break;
      case QueuePart::attention: now.attention += seconds; break;
      case QueuePart::whole: now.whole += seconds; break;
      default: break;
    }
  }
  return now;
}

QueueTimer* Trainer::timer_of_step() {
  if (machine_.choice().gpu < 0 || formation_->idle()) return nullptr;
  const bool sampled = !records() || (progress_.steps + 1) % kTimedSteps == 0;
  if (!sampled && Tracer::current() == nullptr) return nullptr;
  auto& timer = timers_[static_cast<std::size_t>(started_here_) % kMostPending];
  if (timer == nullptr) timer = machine_.queue().make_timer();
  return timer.get();
}

QueueTimes Trainer::take_times(const Pending& pending) {
  if (pending.timer == nullptr) return {};
  QueueTimes times = pending.timer->take();
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr || times.intervals.empty()) return times;
  const index_t step = pending.report.step;
  tracer->add_on_device(TraceSpan::Kind::stream_step, "step", times.intervals.front().start,
                        times.intervals.back().end, step);
  for (const auto& [state, start, end] : times.intervals) {
    if (end == start) continue;
    const char* phase = *state.phase != '\0' ? state.phase : "other";
    tracer->add_on_device(TraceSpan::Kind::stream,
                          state.part == QueuePart::waiting ? "waiting" : phase, start, end, step);
  }
  return times;
}

void Trainer::read_timer(const std::array<double, kQueueParts>& seconds, RankTimes& times) {
  const auto of = [&](QueuePart part) { return seconds[static_cast<std::size_t>(part)]; };
  times.cpu = 0;
  times.matmul = of(QueuePart::matmul);
  times.attention = of(QueuePart::attention);
  times.whole = of(QueuePart::whole);
  times.other = of(QueuePart::other) + times.whole;
  times.own = times.matmul + times.attention + times.other;
}

void Trainer::read_clocks(const Clocks& from, const Clocks& now, RankTimes& times) const {
  const double slept = now.slept - from.slept;
  if (machine_.choice().gpu < 0)
    times.cpu = now.cpu - from.cpu - (now.waited_cpu - from.waited_cpu) + now.emulated_cpu -
                from.emulated_cpu;
  // An emulated slower rank sleeps between its operators: each class is that much longer.
  const double longer = times.own > slept ? times.own / (times.own - slept) : 1;
  times.matmul = longer * (now.matmul - from.matmul);
  times.attention = longer * (now.attention - from.attention);
  times.other = std::max(0.0, times.own - times.matmul - times.attention);
  times.whole = std::min(times.other, longer * (now.whole - from.whole));
}

void Trainer::measure(const Pending& pending, StepReport& report) {
  const Clocks now = clocks();
  // A step that was queued behind another began when that one ended.
  const Clocks from = last_finish_.wall > pending.started.wall ? last_finish_ : pending.started;
  last_finish_ = now;
  report.seconds = now.wall - from.wall;
  report.own_seconds = report.seconds - (now.waited - from.waited);
  const QueueTimes on_device = take_times(pending);
  if (records() && report.step % kTimedSteps != 0) return;
  RankTimes& times = last_times_;
  times.step = report.seconds;
  if (pending.timer != nullptr) {
    read_timer(on_device.seconds, times);
    report.own_seconds = std::min(times.own, report.seconds);
  } else {
    times.own = report.own_seconds;
    read_clocks(from, now, times);
  }
  last_measured_ = {report.step, report.plan, report.seconds, slab_sequences(plan()),
                    pending.first || report.targets == 0};
  new_times_ = true;
}

StepReport Trainer::finish_step() {
  T3D_CHECK(!pending_.empty(), "no step awaits its report");
  Pending pending = std::move(pending_.front());
  pending_.pop_front();
  pending.there->wait();
  pending.gathering.wait_host();
  check_agreement(pending);
  StepReport report = pending.report;
  read_report(pending, report);
  noise_scale_.follow(report, plan().aggregate.method);
  measure(pending, report);
  if (options_.check_finite && !report.skipped) check_finite(pending, report);
  machine_.device().release_pool();  // what the first step after a change of plan did not take
  return report;
}

void Trainer::check_finite(const Pending& pending, const StepReport& report) const {
  // Some leaves may be left out, then their losses are no numbers either; not all.
  const bool sound = report.left_out.empty()
                         ? std::isfinite(report.loss) && std::isfinite(report.grad_norm)
                         : pending.summary[adasum_summary::weights] > 0;
  if (sound) return;
  throw AgreedError(
      ExitCode::diverged,
      fmt::format("step {}: the loss is {} and the gradient norm {}; no later checkpoint than that "
                  "of an earlier step was written. Try a smaller optimizer.lr, a longer "
                  "schedule.warmup_steps or {}",
                  report.step, report.loss, report.grad_norm,
                  plan().compute == ComputeType::fp16 ? "a smaller precision.loss_scale"
                                                      : "precision.compute = \"fp32\""));
}

EvaluatedLoss Trainer::evaluate(BatchSource& source, index_t sequences,
                                Interruption* interruption) {
  const PhaseClock::Scope scope(machine_.clock(), "evaluation");
  const EvaluatedLoss loss = evaluate_model(machine_, *formation_, source, sequences, interruption);
  // The next step gathers anew, so that its bytes do not depend on this.
  if (!formation_->idle()) formation_->model().weights_changed();
  return loss;
}

Ledger Trainer::predicted_evaluation(index_t sequences, index_t rounds, index_t agreements) const {
  const int rank = machine_.world().rank();
  TrafficTable traffic = formation_->idle()
                             ? idle_evaluation_traffic(plan(), rank)
                             : evaluation_traffic(plan(), formation_->coord(), sequences,
                                                  evaluation_micro(plan()), rounds);
  traffic.add(interruption_traffic(plan(), rank), agreements);
  return traffic.ledger();
}

ReshapeReport Trainer::reshape(Plan plan) { return reshape(std::move(plan), kOwnReplica); }

ReshapeReport Trainer::reshape(Plan plan, index_t source) {
  T3D_CHECK(pending_.empty(), "a change of plan while {} steps await their report",
            pending_.size());
  ReshapeReport report;
  const double start = PhaseClock::now();
  ++changes_;
  if (this->plan().same_parameters(plan) && !(plan == this->plan())) {
    take_batch(std::move(plan), report);
    report.seconds = PhaseClock::now() - start;
    return report;
  }
  const Plan before = this->plan();
  TrainedState state = take_state(*formation_);
  image_.reset();
  formation_.reset();
  machine_.ops().trim();
  machine_.device().recycle();
  form(std::move(plan));
  report.predicted = Formation::predicted(this->plan(), machine_.world().rank());
  report.reset =
      move_state(machine_, before, std::move(state), *formation_, report.predicted, source);
  // Bias corrections begin anew with the optimizer's state.
  if (std::any_of(report.reset.begin(), report.reset.end(),
                  [](const std::string& name) { return name != kNoiseState; }))
    progress_.updates = 0;
  machine_.device().recycle();  // for the first step, which gives back the rest
  report.seconds = PhaseClock::now() - start;
  return report;
}

void Trainer::take_batch(Plan plan, ReshapeReport& report) {
  formation_->set_batch(std::move(plan));
  course_.set_sequences(this->plan().sequences());
  predict_step();
  fresh_ = true;
  report.predicted = Formation::predicted(this->plan(), machine_.world().rank());
}

std::vector<TensorPart> Trainer::parts() {
  if (formation_->idle()) return {};
  std::vector<TensorPart> result = state_parts(*formation_, *image_);
  image_->download();
  return result;
}

// Replicas hold the weights and the shared state alike: the first one writes them. The noise
// estimate is the same on all ranks.
std::vector<TensorPart> Trainer::parts_to_save() {
  std::vector<TensorPart> all = parts(), own;
  for (TensorPart& part : all) {
    const bool is_private = part.name.starts_with(kPrivateState);
    const bool is_noise = part.name == kNoiseState;
    const bool writes = is_noise ? formation_->mesh().world().rank() == 0
                                 : is_private || formation_->coord().d == 0;
    if (writes) own.push_back(std::move(part));
  }
  return own;
}

std::map<std::string, std::string> Trainer::texts() const {
  return {{"plan", plan().text()},
          {"mesh", plan().mesh().describe()},
          {"loss_scale", loss_scale_.text()},
          {"samples", std::to_string(progress_.samples)},
          {"updates", std::to_string(progress_.updates)},
          {"warm_samples", std::to_string(progress_.warm_samples)}};
}

void Trainer::restore(index_t step, const std::map<std::string, std::string>& texts,
                      index_t sequences) {
  const auto number = [&](const char* name, index_t otherwise) {
    const auto found = texts.find(name);
    index_t value = otherwise;
    if (found != texts.end())
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), value);
    return value;
  };
  progress_.steps = step;
  progress_.samples = number("samples", step * sequences);
  progress_.updates = number("updates", step);
  const index_t warmup = options_.schedule.warmup_steps;
  progress_.warm_samples = number("warm_samples", step >= warmup ? warmup * sequences : -1);
  if (const auto scale = texts.find("loss_scale"); scale != texts.end())
    loss_scale_.set(scale->second);
  if (formation_->idle()) return;
  image_->upload();
  formation_->model().weights_changed();
}

void Trainer::forget_updates() {
  progress_.updates = 0;
  if (!formation_->idle()) formation_->update().initialise();
}

}  // namespace t3d
