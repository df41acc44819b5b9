#include "train/step/evaluate.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace t3d {

MicroBatch SlabReader::read(const Formation& formation, BatchSource* source, index_t position,
                            index_t sequences) {
  const PhaseClock::Scope scope(formation.context().clock, "read");
  const Partition slabs = formation.replica().tokens_of(sequences);
  const index_t i = formation.coord().i;
  const auto n = static_cast<std::size_t>(slabs.size(i) * formation.plan().model.context);
  ids_.resize(n);
  targets_.resize(n);
  if (n > 0 && source != nullptr)
    source->read(position + slabs.begin(i), slabs.size(i), ids_.data(), targets_.data());
  return {sequences, position, ids_, targets_};
}

index_t evaluation_micro(const Plan& plan) { return plan.largest_micro(); }

double evaluate_model(Machine& machine, const Formation& formation, BatchSource& source,
                      index_t sequences) {
  const Plan& plan = formation.plan();
  const index_t length = plan.model.context, micro = evaluation_micro(plan);
  double sum = 0;
  if (!formation.idle()) {
    Transformer& model = formation.model();
    const Partition shares = Partition::even("evaluation", sequences, std::ssize(plan.replicas));
    const index_t d = formation.coord().d;
    PassInfo pass;
    pass.length = length;
    SlabReader reader;
    model.clear_loss();
    for (index_t at = shares.begin(d); at < shares.end(d);) {
      const index_t n = std::min(micro, shares.end(d) - at);
      model.evaluate(reader.read(formation, &source, at, n), pass);
      at += n;
    }
    sum = model.loss_sum();
  }
  machine.world().all_reduce({&sum, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
  const index_t targets = source.targets(0, sequences);
  if (targets == 0)
    throw AgreedError(
        ExitCode::config,
        "no target of the validation text counts: all are data.ignore_token, or of prompts");
  return sum / static_cast<double>(targets);
}

}  // namespace t3d
