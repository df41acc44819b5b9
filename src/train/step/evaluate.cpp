#include "train/step/evaluate.hpp"

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/partition.hpp"

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

namespace {

/// This rank's passes of an evaluation, one after another.
class EvaluationPasses {
 public:
  EvaluationPasses(const Formation& formation, BatchSource& source, index_t sequences)
      : formation_(formation), source_(source), micro_(evaluation_micro(formation.plan())) {
    pass_.length = formation.plan().model.context;
    if (formation.idle()) return;
    const auto shares =
        Partition::even("evaluation", sequences, std::ssize(formation.plan().replicas));
    at_ = shares.begin(formation.coord().d);
    end_ = shares.end(formation.coord().d);
    formation.model().clear_loss();
  }
  void next() {
    if (at_ >= end_) return;
    const index_t n = std::min(micro_, end_ - at_);
    formation_.model().evaluate(reader_.read(formation_, &source_, at_, n), pass_);
    at_ += n;
  }
  /// Waits until they have been computed.
  [[nodiscard]] double sum() const { return formation_.idle() ? 0 : formation_.model().loss_sum(); }

 private:
  const Formation& formation_;
  BatchSource& source_;
  const index_t micro_;
  index_t at_ = 0, end_ = 0;
  PassInfo pass_;
  SlabReader reader_;
};

/// Whether to go on with the next round. The work of the rounds before has to have ended: a GPU may
/// be far behind.
bool goes_on(Interruption& interruption, const EvaluationPasses& passes) {
  if (interruption.is_due()) {
    static_cast<void>(passes.sum());
    interruption.agree();
  }
  return interruption.stop() == kNoFlag;
}

}  // namespace

EvaluatedLoss evaluate_model(Machine& machine, const Formation& formation, BatchSource& source,
                             index_t sequences, Interruption* interruption) {
  const Plan& plan = formation.plan();
  const index_t most = even_size(sequences, std::ssize(plan.replicas), 0);
  const index_t micro = evaluation_micro(plan), rounds = (most + micro - 1) / micro;
  EvaluatedLoss result;
  EvaluationPasses passes(formation, source, sequences);
  while (result.rounds < rounds && (interruption == nullptr || goes_on(*interruption, passes))) {
    passes.next();
    if (interruption != nullptr) interruption->pass_begun();
    ++result.rounds;
  }
  double sum = passes.sum();
  machine.world().all_reduce({&sum, DType::f64, 1, 1}, ReduceOp::sum).wait_host();
  const index_t targets = source.targets(0, sequences);
  if (targets == 0)
    throw AgreedError(
        ExitCode::config,
        "no target of the validation text counts: all are data.ignore_token, or of prompts");
  const bool whole = result.rounds == rounds;
  result.loss =
      whole ? sum / static_cast<double>(targets) : std::numeric_limits<double>::quiet_NaN();
  return result;
}

}  // namespace t3d
