#include "train/step/trainer.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "train/step/schedule.hpp"
#include "train/step/state_parts.hpp"

namespace t3d {
namespace {

double waited(Communicator& world) {
  double sum = 0;
  for (const auto& [axis, seconds] : world.wait_seconds()) sum += seconds;
  return sum;
}

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
             config.batch.recompute == Recompute::block),
      update_(make_update(context_, config, model_.buckets())),
      loss_scale_(config.precision, context_.activation),
      values_(context_.make(DType::f64, 1, kValues, MemoryKind::workspace)),
      clip_factor_(context_.make(DType::f64, 1, 1, MemoryKind::workspace)),
      image_(context_),
      host_values_(host_array<double>(context_.device, index_t{kMostPending} * kValues)) {
  const ConstTensorView summary = update_->aggregation().summary();
  if (summary.data != nullptr)
    host_summary_ = host_array<double>(context_.device, index_t{kMostPending} * summary.cols);
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

void Trainer::run_micro_batches(std::size_t leaf, index_t& position, const GradientSink* sink) {
  const LeafShare& share = share_.leaves[leaf];
  PassInfo pass;
  pass.length = config_.model.context;
  pass.step = done_;
  pass.seed = static_cast<std::uint64_t>(config_.run.seed);
  const double scale = loss_scale_.value() / static_cast<double>(share.sequences * pass.length);
  // The first step chooses engines and fills the cache of memory; recorded are the others.
  const bool record = machine_.recordable() && config_.debug.graphs && started_here_ > 0;
  for (std::size_t micro = 0; micro < share.micro.size(); ++micro) {
    const MicroBatch batch =
        reader_.read(context_, model_.shape(), source_.get(), position, share.micro[micro]);
    const bool first = micro == 0, last = micro + 1 == share.micro.size();
    const GradientSink* listener = last ? sink : nullptr;
    const int shape = (first ? 1 : 0) + (last ? 2 : 0) + (listener != nullptr ? 4 : 0);
    if (record)
      model_.train_recorded(batch, pass, scale, last, shape, listener);
    else
      model_.train(batch, pass, scale, last, listener);
    position += share.micro[micro];
  }
  if (share.micro.empty()) model_.train_nothing(sink);
  model_.finish_gradients();
}

void Trainer::run_leaf(std::size_t leaf, index_t& position) {
  const bool last = leaf + 1 == share_.leaves.size();
  const GradientSink sink{[this](std::size_t bucket) { update_->bucket_done(bucket); },
                          [this] { update_->settle(); }};
  run_micro_batches(leaf, position, last ? &sink : nullptr);
  const double lr = config_.optimizer.lr * schedule_factor(config_.schedule, done_, steps_);
  update_->leaf_done(static_cast<index_t>(leaf), lr);
  if (!last) model_.drop_gradients();
}

void Trainer::start_step(int stop_requests) {
  T3D_CHECK(pending_.size() < kMostPending, "{} steps await their report", pending_.size());
  Pending pending;
  pending.started = PhaseClock::now();
  pending.waited_before = waited(context_.mesh.world());
  pending.report.step = done_ + 1;
  pending.report.tokens = config_.batch.sequences * config_.model.context;
  pending.report.lr = config_.optimizer.lr * schedule_factor(config_.schedule, done_, steps_);
  pending.report.loss_scale = loss_scale_.value();
  update_->set_steps_done(done_);
  update_->set_loss_scale(loss_scale_.value());
  model_.clear_loss();
  index_t position = done_ * config_.batch.sequences + share_.first;
  for (std::size_t leaf = 0; leaf < share_.leaves.size(); ++leaf) run_leaf(leaf, position);
  update_->aggregate();
  send_report(stop_requests, pending);
  pending.report.skipped = loss_scale_.dynamic() && !usable(pending);
  if (!pending.report.skipped) {
    const PhaseClock::Scope scope(machine_.clock(), "optimizer");
    context_.ops.clip_factor(context_.queue, values_.view().col_range(kSquares, 1),
                             config_.optimizer.clip_norm, clip_factor_);
    update_->apply(pending.report.lr, clip_factor_);
    model_.weights_changed();
  }
  model_.drop_gradients();
  pending_.push_back(std::move(pending));
  ++done_;
  ++started_here_;
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
  if (summary[adasum_summary::signal] > 0 && summary[adasum_summary::noise] > 0)
    report.noise_sequences =
        summary[adasum_summary::noise] / summary[adasum_summary::signal] * reference_batch(config_);
  int leaf = 0;
  for (index_t replica = 0; replica < config_.mesh.replicas; ++replica)
    for (const LeafShare& share : replica_share(config_, replica).leaves) {
      if (share.sequences > 0 && summary[adasum_summary::columns + leaf] == 0)
        report.left_out.push_back(leaf);
      ++leaf;
    }
}

void Trainer::send_report(int stop_requests, Pending& pending) {
  const PhaseClock::Scope scope(machine_.clock(), "report");
  const TensorView values = values_;
  double own[kValues] = {};
  own[kStops] = stop_requests;
  own[kOwnSeconds] = own[kLongest] = last_own_seconds_;
  context_.device.copy(values.data, own, sizeof own, context_.queue);
  context_.ops.add(context_.queue, model_.loss_sum_on_device(), values.col_range(kLoss, 1));
  update_->add_squares(values.col_range(kSquares, 1));
  Communicator& world = context_.mesh.world();
  if (world.size() > 1) {
    Work sum = world.all_reduce(values.col_range(0, kSums), ReduceOp::sum);
    Work max = world.all_reduce(values.col_range(kLongest, 1), ReduceOp::max);
    sum.wait(context_.queue);
    max.wait(context_.queue);
  }
  pending.values = host_values_.get() + started_here_ % index_t{kMostPending} * kValues;
  context_.device.copy(pending.values, values.data, values.bytes(), context_.queue);
  const ConstTensorView summary = update_->aggregation().summary();
  if (summary.data != nullptr) {
    pending.summary = host_summary_.get() + started_here_ % index_t{kMostPending} * summary.cols;
    context_.device.copy(pending.summary, summary.data, summary.bytes(), context_.queue);
  }
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
  report.grad_norm = std::sqrt(values[kSquares]);
  read_summary(pending, report);
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
  // Some leaves may be left out, then their losses are no numbers either; not all.
  const bool sound = report.left_out.empty()
                         ? std::isfinite(report.loss) && std::isfinite(report.grad_norm)
                         : pending.summary[adasum_summary::weights] > 0;
  if (config_.debug.check_finite && !report.skipped && !sound)
    throw AgreedError(
        ExitCode::diverged,
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
  const auto append = [&](const std::vector<Optimizer::State>& states, const char* prefix) {
    for (const Optimizer::State& state : states)
      append_parts(model_.buckets(), image_.of(state.shards), prefix + state.kind + "/", result);
  };
  append(update_->state(), "optimizer/");
  append(update_->state_of_leaves(), kPrivateState);
  if (const TensorView noise = update_->aggregation().noise(); noise.data != nullptr) {
    TensorPart part{kPrivateState + std::string("noise"),
                    noise.dtype,
                    noise.rows,
                    noise.cols,
                    false,
                    image_.of({noise}).front().data,
                    {{0, 0, noise.rows, noise.cols, 0}}};
    result.push_back(std::move(part));
  }
  image_.download();
  return result;
}

// Replicas hold the weights and the shared state alike: the first one writes them. The noise
// estimate is the same on all ranks.
std::vector<TensorPart> Trainer::parts_to_save() {
  std::vector<TensorPart> all = parts(), own;
  for (TensorPart& part : all) {
    const bool is_private = part.name.starts_with(kPrivateState);
    const bool is_noise = is_private && part.name.ends_with("/noise");
    if (is_noise ? context_.mesh.world().rank() == 0 : is_private || context_.coord(Axis::d) == 0)
      own.push_back(std::move(part));
  }
  return own;
}

void Trainer::state_loaded() {
  image_.upload();
  model_.weights_changed();
}

Ledger Trainer::predicted_step() const {
  Ledger ledger;
  const std::vector<index_t> micro = share_.micro();
  model_.predict_step(ledger, micro, config_.model.context,
                      static_cast<index_t>(share_.leaves.size()));
  update_->predict(ledger);
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
