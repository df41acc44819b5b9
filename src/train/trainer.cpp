#include "train/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "train/schedule.hpp"
#include "train/state_parts.hpp"

namespace t3d {
namespace {

double waited(Communicator& world) {
  double sum = 0;
  for (const auto& [axis, seconds] : world.wait_seconds()) sum += seconds;
  return sum;
}

// Keeps gradients of a mean loss within fp16's range for models of the sizes that fp16 is used for.
constexpr double kHalfLossScale = 4096;

}  // namespace

index_t evaluation_micro(const Config& config) {
  return config.batch.micro > 0 ? config.batch.micro : replica_share(config, 0).sequences;
}

Trainer::Trainer(Machine& machine, const Config& config, index_t steps,
                 std::shared_ptr<BatchSource> source)
    : machine_(machine),
      context_(machine.context()),
      config_(config),
      steps_(steps),
      source_(std::move(source)),
      share_(replica_share(config, context_.coord(Axis::d))),
      model_(context_,
             ModelShape(config.model, config.mesh, machine.mesh().shape(), largest_micro(config)),
             config.batch.recompute == "block"),
      optimizer_(make_optimizer(context_, config.optimizer, model_.buckets())),
      aggregation_(make_aggregation(context_, config.aggregate)),
      loss_scale_(config.precision.loss_scale > 0     ? config.precision.loss_scale
                  : context_.activation == DType::f16 ? kHalfLossScale
                                                      : 1.0),
      values_(context_.make(DType::f64, 1, kValues, MemoryKind::workspace)),
      clip_factor_(context_.make(DType::f64, 1, 1, MemoryKind::workspace)),
      image_(context_),
      host_values_(host_array<double>(context_.device, kMostPending * kValues)) {
  if (share_.sequences == 0)
    throw_error(ExitCode::config,
                "batch.sequences = {} leaves a replica without samples: {} replicas",
                config.batch.sequences, config.mesh.replicas);
  model_.initialise(static_cast<std::uint64_t>(config.run.seed));
}

MicroBatch SlabReader::read(const Context& context, const ModelShape& shape, BatchSource* source,
                            index_t position, index_t sequences) {
  const PhaseClock::Scope scope(context.clock, "read");
  const Partition slabs = shape.tokens(sequences, 1);
  const index_t i = context.coord(Axis::i);
  const auto n = static_cast<std::size_t>(slabs.size(i) * shape.model.context);
  ids_.resize(n);
  targets_.resize(n);
  if (n > 0 && source != nullptr)
    source->read(position + slabs.begin(i), slabs.size(i), ids_.data(), targets_.data());
  return {sequences, position, ids_, targets_};
}

void Trainer::run_micro_batches() {
  PassInfo pass;
  pass.length = config_.model.context;
  pass.step = done_;
  pass.seed = static_cast<std::uint64_t>(config_.run.seed);
  const double scale = loss_scale_ / static_cast<double>(share_.sequences * pass.length);
  // The first step chooses engines and fills the cache of memory; recorded are the others.
  const bool record = machine_.recordable() && config_.debug.graphs && started_here_ > 0;

  model_.clear_loss();
  index_t position = done_ * config_.batch.sequences + share_.first;
  for (std::size_t micro = 0; micro < share_.micro.size(); ++micro) {
    const MicroBatch batch =
        reader_.read(context_, model_.shape(), source_.get(), position, share_.micro[micro]);
    const bool first = micro == 0, last = micro + 1 == share_.micro.size();
    if (record)
      model_.train_recorded(batch, pass, scale, last, (first ? 1 : 0) + (last ? 2 : 0));
    else
      model_.train(batch, pass, scale, last);
    position += share_.micro[micro];
  }
  model_.finish_gradients();
}

void Trainer::start_step(int stop_requests) {
  T3D_CHECK(pending_.size() < kMostPending, "{} steps await their report", pending_.size());
  Pending pending;
  pending.started = PhaseClock::now();
  pending.waited_before = waited(context_.mesh.world());
  run_micro_batches();
  aggregation_->run(model_.buckets(), static_cast<double>(share_.sequences) /
                                          static_cast<double>(config_.batch.sequences));
  send_report(stop_requests, pending);

  pending.report.step = done_ + 1;
  pending.report.tokens = config_.batch.sequences * config_.model.context;
  pending.report.lr = config_.optimizer.lr * schedule_factor(config_.schedule, done_, steps_);
  {
    const PhaseClock::Scope scope(machine_.clock(), "optimizer");
    context_.ops.clip_factor(context_.queue, values_.view().col_range(kSquares, 1),
                             config_.optimizer.clip_norm * loss_scale_, clip_factor_);
    optimizer_->update(done_ + 1, pending.report.lr, 1 / loss_scale_, clip_factor_);
  }
  model_.drop_gradients();
  model_.weights_changed();
  pending_.push_back(std::move(pending));
  ++done_;
  ++started_here_;
}

void Trainer::send_report(int stop_requests, Pending& pending) {
  const PhaseClock::Scope scope(machine_.clock(), "report");
  const TensorView values = values_;
  double own[kValues] = {};
  own[kStops] = stop_requests;
  own[kOwnSeconds] = own[kLongest] = last_own_seconds_;
  context_.device.copy(values.data, own, sizeof own, context_.queue);
  context_.ops.add(context_.queue, model_.loss_sum_on_device(), values.col_range(kLoss, 1));
  // Replicas hold equal gradients after aggregation; only the first one's count.
  if (context_.coord(Axis::d) == 0)
    add_gradient_squares(context_, model_.buckets(), values.col_range(kSquares, 1));
  Communicator& world = context_.mesh.world();
  if (world.size() > 1) {
    Work sum = world.all_reduce(values.col_range(0, kSums), ReduceOp::sum);
    Work max = world.all_reduce(values.col_range(kLongest, 1), ReduceOp::max);
    sum.wait(context_.queue);
    max.wait(context_.queue);
  }
  pending.values = host_values_.get() + started_here_ % index_t{kMostPending} * kValues;
  context_.device.copy(pending.values, values.data, values.bytes(), context_.queue);
  pending.there = context_.queue.mark();
}

StepReport Trainer::finish_step() {
  T3D_CHECK(!pending_.empty(), "no step awaits its report");
  const Pending pending = std::move(pending_.front());
  pending_.pop_front();
  pending.there->wait();
  const double now = PhaseClock::now(), waited_now = waited(context_.mesh.world());
  const double* values = pending.values;
  StepReport report = pending.report;
  report.loss = values[kLoss] / static_cast<double>(report.tokens);
  report.grad_norm = std::sqrt(values[kSquares]) / loss_scale_;
  report.stop_requests = values[kStops] > 0 ? kStopSignal : kNoStop;
  report.mean_own_seconds =
      values[kOwnSeconds] / static_cast<double>(context_.mesh.shape().ranks());
  report.max_own_seconds = values[kLongest];
  // A step that was queued behind another began when that one ended.
  const bool behind = last_finish_ > pending.started;
  report.seconds = now - (behind ? last_finish_ : pending.started);
  report.own_seconds =
      report.seconds - (waited_now - (behind ? last_waited_ : pending.waited_before));
  last_own_seconds_ = report.own_seconds;
  last_finish_ = now;
  last_waited_ = waited_now;
  if (config_.debug.check_finite &&
      !(std::isfinite(report.loss) && std::isfinite(report.grad_norm)))
    throw AgreedError(
        ExitCode::internal,
        fmt::format(
            "step {}: the loss is {} and the gradient norm {}; no later checkpoint than that "
            "of an earlier step was written. Try a smaller optimizer.lr, a longer "
            "schedule.warmup_steps or {}",
            report.step, report.loss, report.grad_norm,
            context_.activation == DType::f16 ? "a smaller precision.loss_scale"
                                              : "precision.compute = \"fp32\""));
  return report;
}

index_t Trainer::evaluation_share(index_t sequences, index_t replica) const {
  return Partition::even("evaluation", sequences, config_.mesh.replicas).size(replica);
}

double Trainer::evaluate(BatchSource& source, index_t sequences) {
  const PhaseClock::Scope scope(machine_.clock(), "evaluation");
  const double loss = evaluate_model(context_, model_, source, sequences, evaluation_micro(config_),
                                     config_.mesh.replicas);
  model_.weights_changed();  // the next step gathers anew, so its bytes do not depend on this
  return loss;
}

double evaluate_model(const Context& context, Transformer& model, BatchSource& source,
                      index_t sequences, index_t micro, index_t replicas) {
  const Partition shares = Partition::even("evaluation", sequences, replicas);
  const index_t d = context.coord(Axis::d);
  PassInfo pass;
  pass.length = model.shape().model.context;
  SlabReader reader;
  model.clear_loss();
  for (index_t at = shares.begin(d); at < shares.end(d);) {
    const index_t n = std::min(micro, shares.end(d) - at);
    model.evaluate(reader.read(context, model.shape(), &source, at, n), pass);
    at += n;
  }
  double sum = model.loss_sum();
  context.control.all_reduce({&sum, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
  return sum / static_cast<double>(sequences * pass.length);
}

std::vector<TensorPart> Trainer::parts() {
  std::vector<TensorPart> result = weight_parts(model_.buckets(), image_);
  for (const Optimizer::State& state : optimizer_->state())
    append_parts(model_.buckets(), image_.of(state.shards), "optimizer/" + state.kind + "/",
                 result);
  image_.download();
  return result;
}

void Trainer::state_loaded() {
  image_.upload();
  model_.weights_changed();
}

Ledger Trainer::predicted_step() const {
  Ledger ledger;
  model_.predict_step(ledger, share_.micro, config_.model.context);
  aggregation_->predict(ledger, model_.buckets());
  const int ranks = static_cast<int>(context_.mesh.shape().ranks());
  // The report: everybody's four sums and one maximum to everybody.
  const index_t report = (4 + 1) * size_of(DType::f64) * (ranks - 1);
  ledger.count(Verb::all_reduce, "world", report);
  return ledger;
}

Ledger Trainer::predicted_evaluation(index_t sequences) const {
  Ledger ledger;
  const index_t share = evaluation_share(sequences, context_.coord(Axis::d));
  std::vector<index_t> micro;
  for (index_t at = 0; at < share; at += micro.back())
    micro.push_back(std::min(evaluation_micro(config_), share - at));
  model_.predict_evaluation(ledger, micro, config_.model.context);
  ledger.count(Verb::all_reduce, "world",
               size_of(DType::f64) * (context_.mesh.shape().ranks() - 1));
  return ledger;
}

}  // namespace t3d
