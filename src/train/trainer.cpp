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
      aggregation_(make_aggregation(context_, config.aggregate)) {
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

StepReport Trainer::step(int stop_requests) {
  const double start = PhaseClock::now();
  const double waited_before = waited(context_.mesh.world());
  PassInfo pass;
  pass.length = config_.model.context;
  pass.step = done_;
  pass.seed = static_cast<std::uint64_t>(config_.run.seed);
  const double scale = 1.0 / static_cast<double>(share_.sequences * pass.length);

  model_.clear_loss();
  index_t position = done_ * config_.batch.sequences + share_.first;
  for (std::size_t micro = 0; micro < share_.micro.size(); ++micro) {
    const MicroBatch batch =
        reader_.read(context_, model_.shape(), source_.get(), position, share_.micro[micro]);
    model_.train(batch, pass, scale, micro + 1 == share_.micro.size());
    position += share_.micro[micro];
  }
  model_.finish_gradients();
  aggregation_->run(model_.buckets(), static_cast<double>(share_.sequences) /
                                          static_cast<double>(config_.batch.sequences));

  Tensor squares = context_.make(DType::f64, 1, 1, MemoryKind::workspace);
  context_.ops.fill(context_.queue, squares, 0);
  add_gradient_squares(context_, model_.buckets(), squares);
  double own_squares = 0;
  context_.device.copy(&own_squares, squares.view().data, sizeof own_squares, context_.queue);
  context_.queue.synchronize();
  const std::vector<double> sums = reduce_report(own_squares, stop_requests);

  StepReport report;
  report.tokens = config_.batch.sequences * pass.length;
  report.loss = sums[0] / static_cast<double>(report.tokens);
  report.grad_norm = std::sqrt(sums[1]);
  report.stop_requests = sums[2] > 0 ? kStopSignal : kNoStop;
  report.mean_own_seconds = sums[3] / static_cast<double>(context_.mesh.shape().ranks());
  report.max_own_seconds = sums[4];
  if (config_.debug.check_finite &&
      !(std::isfinite(report.loss) && std::isfinite(report.grad_norm)))
    throw AgreedError(
        ExitCode::internal,
        fmt::format(
            "step {}: the loss is {} and the gradient norm {}; no later checkpoint than that "
            "of an earlier step was written. Try a smaller optimizer.lr, a longer "
            "schedule.warmup_steps or precision.compute = \"fp32\"",
            done_ + 1, report.loss, report.grad_norm));

  const double clip = config_.optimizer.clip_norm;
  // The rule of torch.nn.utils.clip_grad_norm_, so that runs compare.
  const double grad_scale = clip > 0 ? std::min(1.0, clip / (report.grad_norm + 1e-6)) : 1.0;
  report.lr = config_.optimizer.lr * schedule_factor(config_.schedule, done_, steps_);
  {
    const PhaseClock::Scope scope(machine_.clock(), "optimizer");
    optimizer_->update(done_ + 1, report.lr, grad_scale);
  }
  model_.drop_gradients();
  model_.weights_changed();

  report.step = ++done_;
  report.seconds = PhaseClock::now() - start;
  report.own_seconds = report.seconds - (waited(context_.mesh.world()) - waited_before);
  last_own_seconds_ = report.own_seconds;
  return report;
}

// The step's one message to all: sums of loss, gradient squares, stop flags, own seconds; last the
// maximum of own seconds.
std::vector<double> Trainer::reduce_report(double sum_squares, int stop_requests) {
  const PhaseClock::Scope scope(machine_.clock(), "report");
  Communicator& world = context_.mesh.world();
  // Replicas hold equal gradients after aggregation; only the first one's count.
  std::vector<double> sums{model_.loss_sum(), context_.coord(Axis::d) == 0 ? sum_squares : 0.0,
                           static_cast<double>(stop_requests), last_own_seconds_};
  double longest = last_own_seconds_;
  Work sum = world.all_reduce({sums.data(), DType::f64, 1, static_cast<index_t>(sums.size())},
                              ReduceOp::sum);
  Work max = world.all_reduce({&longest, DType::f64, 1, 1}, ReduceOp::max);
  sum.wait_host();
  max.wait_host();
  sums.push_back(longest);
  return sums;
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
  context.mesh.world().all_reduce({&sum, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
  return sum / static_cast<double>(sequences * pass.length);
}

std::vector<TensorPart> Trainer::parts() {
  std::vector<TensorPart> result = weight_parts(model_.buckets());
  for (const Optimizer::State& state : optimizer_->state())
    append_parts(model_.buckets(), state.shards, "optimizer/" + state.kind + "/", result);
  return result;
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
