// Whole trainings with Adasum, ranks as threads: it does not matter whether a gradient comes from a
// replica or from a leaf, nor on which cuboid; the placements agree where they must; clipping means
// the same for any number of replicas; the state continues to the bit; a gradient that is not
// finite is left out of one step and no more.
#include <cmath>

#include "support/catch.hpp"
#include "support/training.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using enum AggregatePlacement;
using enum OptimizerKind;

constexpr index_t kSteps = 8;

double rate_of(OptimizerKind optimizer) { return optimizer == sgd ? 0.1 : 3e-3; }

Config adasum(AggregatePlacement placement, OptimizerKind optimizer) {
  Config config = tiny_gpt();
  config.precision.backend = BackendRule::cpu;
  config.batch.sequences = 8;
  config.optimizer.kind = optimizer;
  config.schedule.kind = ScheduleKind::constant;
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = placement;
  config.aggregate.algorithm = AggregateAlgorithm::gram;
  config.aggregate.gain_exponent = optimizer == sgd ? 1 : 0.5;
  return config;
}

Run train_leaves(Config config, const Grid& grid, index_t replicas, index_t leaves) {
  config.aggregate.leaves = leaves;
  return train(config, grid, replicas, kSteps, rate_of(config.optimizer.kind));
}

double largest_difference(const Run& a, const Run& b) {
  double largest = 0;
  for (std::size_t step = 0; step < b.losses.size(); ++step)
    largest = std::max(largest, std::abs(a.losses[step] / b.losses[step] - 1));
  return largest;
}

void check_dealing(AggregatePlacement placement, OptimizerKind optimizer, const Grid& grid,
                   const Run& one_rank, double tolerance) {
  const Config config = adasum(placement, optimizer);
  for (const auto& [replicas, leaves] :
       {std::pair<index_t, index_t>{1, 4}, std::pair<index_t, index_t>{2, 2},
        std::pair<index_t, index_t>{4, 1}}) {
    const Run run = train_leaves(config, grid, replicas, leaves);
    INFO(placement << ", " << optimizer << ": " << replicas << " x " << grid.text() << ", "
                   << leaves << " leaves each; " << run.bytes);
    CHECK(run.bytes_agree);
    CHECK(largest_difference(run, one_rank) <= tolerance);
  }
}

}  // namespace

TEST_CASE("a gradient is a gradient, of a replica or of a leaf") {
  for (const AggregatePlacement placement : {pre, gain, post})
    for (const OptimizerKind optimizer : {sgd, adamw, lamb, muon}) {
      const Run one = train_leaves(adasum(placement, optimizer), {}, 1, 4);
      CHECK(one.losses.back() < 0.998 * one.losses.front());
      check_dealing(placement, optimizer, {}, one, 1e-5);
    }
}

TEST_CASE("trainings with adasum are the same on every cuboid") {
  for (const auto& [placement, optimizer] :
       {std::pair{pre, sgd}, {gain, adamw}, {post, lamb}, {gain, muon}}) {
    const Run one = train_leaves(adasum(placement, optimizer), {}, 1, 4);
    for (const Grid& grid : {Grid{2, 1, 1, {}, {}, {}}, Grid{1, 2, 2, {}, {1, 3}, {5, 3}}})
      check_dealing(placement, optimizer, grid, one, 1e-4);
  }
}

TEST_CASE("adasum of one gradient is that gradient") {
  for (const OptimizerKind optimizer : {sgd, adamw})
    for (const AggregatePlacement placement : {pre, gain, post}) {
      Config config = adasum(placement, optimizer);
      const Run alone = train_leaves(config, {}, 1, 1);
      config.aggregate.method = AggregateMethod::mean;
      INFO(placement << ", " << optimizer);
      CHECK(largest_difference(alone, train_leaves(config, {}, 1, 1)) <= 1e-6);
    }
}

TEST_CASE("a gain to the power of 0 is a mean") {
  Config config = adasum(gain, adamw);
  config.aggregate.gain_exponent = 0;
  const Run powerless = train_leaves(config, {}, 2, 1);
  config.aggregate.method = AggregateMethod::mean;
  CHECK(largest_difference(powerless, train_leaves(config, {}, 2, 1)) <= 1e-6);
}

// Adasum is homogeneous: what plain SGD makes of gradients, it makes of changes.
TEST_CASE("plain SGD steps alike before and after") {
  Config config = adasum(pre, sgd);
  config.optimizer.momentum = 0;
  config.optimizer.weight_decay = 0;
  config.optimizer.clip_norm = 0;
  const Run before = train_leaves(config, {1, 2, 1, {}, {}, {}}, 3, 1);
  config.aggregate.placement = AggregatePlacement::post;
  CHECK(largest_difference(train_leaves(config, {1, 2, 1, {}, {}, {}}, 3, 1), before) <= 1e-5);
}

namespace {

/// How far one step of plain SGD with learning rate 1 moves the weights.
double sgd_length(Config config, index_t replicas, double* grad_norm = nullptr) {
  config.optimizer.momentum = 0;
  config.optimizer.weight_decay = 0;
  config.optimizer.lr = 1;
  set_grid(config, {}, replicas);
  GlobalTensors before, after;
  run_local_ranks(static_cast<int>(replicas), [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan_of(config, machine), test_options(config, 1), corpus(config));
    Transformer& model = trainer.formation().model();
    collect(model, false, before);
    const StepReport report = trainer.step(kNoFlag);
    collect(model, false, after);
    if (world.rank() == 0 && grad_norm != nullptr) *grad_norm = report.grad_norm;
  });
  double squares = 0;
  for (const auto& [name, values] : before.values)
    for (std::size_t at = 0; at < values.size(); ++at)
      squares += std::pow(after.values[name][at] - values[at], 2);
  return std::sqrt(squares);
}

}  // namespace

// The bound is on the mean gradient, so the same clip_norm cuts the same share off a step however
// many replicas there are, and leaves what adasum adds to the mean.
TEST_CASE("clipping means the same for any number of replicas") {
  for (const AggregatePlacement placement : {pre, gain}) {
    double mean_norm = 0;
    for (const index_t replicas : {1, 2, 4}) {
      INFO(placement << " of " << replicas);
      Config config = adasum(placement, sgd);
      config.optimizer.clip_norm = 0;
      double norm = 0;
      const double whole = sgd_length(config, replicas, &norm);
      if (replicas == 1) mean_norm = norm;
      CHECK(norm == Approx(mean_norm).epsilon(1e-5));
      CHECK(whole >= (replicas == 1 ? 0.9999 : 1.05) * norm);
      config.optimizer.clip_norm = 0.25 * mean_norm;
      CHECK(sgd_length(config, replicas) == Approx(0.25 * whole).epsilon(1e-4));
    }
  }
}

namespace {

Run part(const Config& config, const Grid& grid, index_t replicas, index_t first, index_t last,
         const ScratchFolder& folder) {
  return train_part(config, grid, replicas, first, last, folder, rate_of(config.optimizer.kind));
}

Config with_state(AggregatePlacement placement, OptimizerKind optimizer) {
  Config config = adasum(placement, optimizer);
  config.aggregate.reference_batch = 1;  // weights above 1: leaves enter by the measured noise
  return config;
}

}  // namespace

TEST_CASE("a continued training is the same to the bit") {
  const Grid grid{1, 2, 1, {}, {3, 1}, {}};
  for (const auto& [placement, optimizer] :
       {std::pair{pre, sgd}, {gain, adamw}, {post, adamw}, {post, muon}}) {
    INFO(placement << ", " << optimizer);
    Config config = with_state(placement, optimizer);
    config.aggregate.leaves = 2;
    const ScratchFolder whole("whole"), halves("halves");
    const Run one = part(config, grid, 2, 0, kSteps, whole);
    Run two = part(config, grid, 2, 0, 4, halves);
    const Run rest = part(config, grid, 2, 4, kSteps, halves);
    two.losses.insert(two.losses.end(), rest.losses.begin(), rest.losses.end());
    CHECK(one.losses == two.losses);
    CHECK(one.reports.back().noise_sequences == rest.reports.back().noise_sequences);
  }
}

// The same leaves on other replicas have the same private state; new leaves begin without.
TEST_CASE("a training continues with other numbers of replicas") {
  for (const AggregatePlacement placement : {gain, post}) {
    INFO(placement);
    const Config config = with_state(placement, adamw);
    const ScratchFolder whole("whole");
    const Run one = part(config, {}, 2, 0, kSteps, whole);
    const auto continued = [&](const Grid& grid, index_t replicas, index_t leaves) {
      Config other = config;
      other.aggregate.leaves = leaves;
      const ScratchFolder moved("moved");
      (void)part(config, {}, 2, 0, 4, moved);
      return part(other, grid, replicas, 4, kSteps, moved);
    };
    const Run leaves = continued({}, 1, 2);
    for (std::size_t step = 0; step < leaves.losses.size(); ++step)
      CHECK(leaves.losses[step] == Approx(one.losses[4 + step]).epsilon(1e-5));
    for (const index_t replicas : {1, 4}) {
      const Run other = continued({1, 1, 2, {}, {}, {}}, replicas, 1);
      CHECK(other.losses.front() == Approx(one.losses[4]).epsilon(1e-5));
      for (const double loss : other.losses) CHECK(loss < one.losses.front());
    }
  }
}

namespace {

constexpr index_t kPoison = 60;

/// A text in which token kPoison stands once, in the `sample`th sample.
std::shared_ptr<BatchSource> poisoned_corpus(const Config& config, index_t sample) {
  std::vector<std::int32_t> ids;
  for (index_t at = 0; at < 4000; ++at)
    ids.push_back(static_cast<std::int32_t>((at * at / 7 + at) % kPoison));
  ids[static_cast<std::size_t>(sample * config.model.context + 5)] = kPoison;
  return std::make_shared<BatchSource>(make_memory_source(ids, 61), config.model.context, 1, false);
}

/// The embedding of kPoison is so large that dropout's factor makes it infinite: whoever reads the
/// token has no finite gradient. Ranks that read others are not concerned. The reports are those of
/// rank 0, or of the last one of `idle` ranks more.
Run train_poisoned(Config config, const Grid& grid, index_t replicas, index_t sample,
                   int idle = 0) {
  set_grid(config, grid, replicas);
  config.model.tied_embeddings = false;
  config.model.dropout = 0.5;
  config.optimizer.lr = rate_of(config.optimizer.kind);
  config.optimizer.weight_decay = 0;
  Run run;
  const int ranks = ranks_of(config.mesh) + idle;
  run_local_ranks(ranks, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    Trainer trainer(machine, plan_of(config, machine), test_options(config, kSteps),
                    poisoned_corpus(config, sample));
    if (!trainer.formation().idle()) {
      Transformer& model = trainer.formation().model();
      for_each_element(model, false,
                       [&](const ParamEntry& entry, index_t index, TensorView shard, index_t at) {
                         if (entry.name == "wte.weight" && index / entry.cols == kPoison)
                           set(shard, 0, at, 3e38);
                       });
      model.weights_changed();
    }
    for (index_t step = 0; step < kSteps; ++step) {
      world.ledger().clear();
      const StepReport report = trainer.step(kNoFlag);
      const std::string bytes = difference(world.ledger(), trainer.predicted_step());
      if (!bytes.empty()) throw_error(ExitCode::internal, "rank {}: {}", world.rank(), bytes);
      if (world.rank() != (idle > 0 ? ranks - 1 : 0)) continue;
      run.losses.push_back(report.loss);
      run.reports.push_back(report);
    }
  });
  return run;
}

}  // namespace

TEST_CASE("a gradient that is not finite is left out and reported, and the run goes on") {
  for (const AggregatePlacement placement : {pre, gain, post})
    for (const auto& [replicas, leaves] :
         {std::pair<index_t, index_t>{4, 1}, std::pair<index_t, index_t>{2, 2}}) {
      INFO(placement << ", " << replicas << " x " << leaves);
      Config config = adasum(placement, placement == pre ? sgd : adamw);
      config.aggregate.leaves = leaves;
      // Step 3 reads samples 16 to 23, two for each leaf.
      const Run run = train_poisoned(config, {1, 2, 1, {}, {}, {}}, replicas, 21);
      for (std::size_t step = 0; step < run.reports.size(); ++step) {
        const bool bad = step == 2;
        CHECK(run.reports[step].left_out == (bad ? std::vector<int>{2} : std::vector<int>{}));
        CHECK(std::isfinite(run.reports[step].grad_norm));
        CHECK(std::isfinite(run.losses[step]) == !bad);
      }
      CHECK(run.losses.back() < run.losses.front());
    }
}

TEST_CASE("a gradient left out of fp16 halves the loss scale, the others step") {
  for (const AggregatePlacement placement : {pre, gain, post}) {
    INFO(placement);
    Config config = adasum(placement, adamw);
    config.precision.backend = BackendRule::reference;
    config.precision.compute = ComputeType::fp16;
    const Run run = train_poisoned(config, {}, 4, 21);
    CHECK(run.reports[2].left_out == std::vector<int>{2});
    for (const StepReport& report : run.reports) {
      CHECK_FALSE(report.skipped);
      CHECK(report.loss_scale == (report.step <= 3 ? 65536 : 32768));
    }
    CHECK(run.losses[3] < run.losses.front());
  }
}

TEST_CASE("ranks without a place learn what was left out, and draw the same conclusions") {
  for (const ComputeType compute : {ComputeType::fp32, ComputeType::fp16}) {
    INFO(compute);
    Config config = adasum(gain, adamw);
    config.precision.backend = BackendRule::reference;
    config.precision.compute = compute;
    const Run with_place = train_poisoned(config, {}, 4, 21);
    const Run without = train_poisoned(config, {}, 4, 21, 1);
    REQUIRE(without.reports.size() == with_place.reports.size());
    for (std::size_t step = 0; step < without.reports.size(); ++step) {
      const StepReport& there = with_place.reports[step];
      const StepReport& here = without.reports[step];
      CHECK(here.left_out == there.left_out);
      CHECK(here.loss_scale == there.loss_scale);
      CHECK(here.skipped == there.skipped);
      CHECK(here.gain == there.gain);
      CHECK(here.grad_norm == there.grad_norm);
    }
  }
}

TEST_CASE("no finite gradient at all stops the run") {
  for (const AggregatePlacement placement : {pre, gain, post})
    CHECK_THROWS_WITH(train_poisoned(adasum(placement, adamw), {}, 1, 21), contains("step 3"));
}

TEST_CASE("uneven shares, one of them nothing, train alike on every cuboid") {
  for (const AggregatePlacement placement : {pre, gain, post}) {
    Config config = adasum(placement, adamw);
    config.batch.shares = {3, 0, 1};
    config.batch.micro = 2;
    config.aggregate.reference_batch = 2;
    const Run one = train_leaves(config, {}, 3, 1);
    const Run cuboid = train_leaves(config, {1, 2, 1, {}, {1, 3}, {}}, 3, 1);
    config.batch.shares = {3, 1};
    const Run two = train_leaves(config, {}, 2, 1);
    INFO(placement << ' ' << one.bytes << cuboid.bytes);
    CHECK((one.bytes_agree && cuboid.bytes_agree));
    CHECK(largest_difference(two, one) <= 1e-6);
    CHECK(largest_difference(cuboid, one) <= 1e-4);
  }
}
