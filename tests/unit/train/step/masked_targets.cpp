// Targets that do not count (data.ignore_token): whoever reads the samples, every target that
// counts weighs the same, in the loss, in the gradient and in the validation.
#include <atomic>
#include <cmath>

#include "core/error.hpp"
#include "hetero/planner/slab_sequences.hpp"
#include "support/catch.hpp"
#include "support/plan_changes.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using Counts = std::vector<index_t>;

constexpr index_t kContext = 8;
constexpr std::int32_t kIgnored = 0;

/// Samples of which the first counts[n % size] targets count, at most kContext - 1: a sample begins
/// with an ignored token, which is the last target of the one before. Those that count nothing are
/// empty; the others have the same text whatever stands between them.
std::shared_ptr<BatchSource> samples(const Counts& counts, index_t total) {
  std::vector<std::int32_t> ids;
  index_t number = 0;  // of samples that are not empty
  for (index_t n = 0; n < total; ++n) {
    const index_t count = counts[static_cast<std::size_t>(n % std::ssize(counts))];
    for (index_t at = 0; at < kContext; ++at)
      ids.push_back(at == 0 || at > count ? kIgnored
                                          : static_cast<std::int32_t>(
                                                1 + (random_bits({41, 0}, number) +
                                                     static_cast<std::uint32_t>(at * at + number)) %
                                                        60));
    if (count > 0) ++number;
  }
  ids.push_back(kIgnored);
  return std::make_shared<BatchSource>(make_memory_source(ids, 61), kContext, 1, false, kIgnored);
}

MakeSource samples_of(Counts counts) {
  return [counts](const Config&) { return samples(counts, 40 * std::ssize(counts)); };
}

Config input(index_t sequences, AggregateMethod method = AggregateMethod::mean) {
  Config config = gpt_input();
  config.model.context = kContext;
  config.batch.sequences = sequences;
  config.precision.compute = ComputeType::fp64;
  config.precision.backend = BackendRule::reference;
  config.optimizer.kind = OptimizerKind::sgd;
  config.optimizer.lr = 0.1;
  config.schedule.kind = ScheduleKind::constant;
  config.aggregate.method = method;
  return config;
}

/// The same reference batch for all: what a sum is measured in.
Plan plan_for(const Config& config, const std::vector<Cuboid>& cuboids, const Counts& slabs,
              index_t micro = 0) {
  Plan plan = with_slab_sequences(plan_of_cuboids(config, cuboids), slabs, micro);
  plan.aggregate.reference_batch = 2;
  return plan;
}

struct Trained {
  std::vector<double> losses, norms;
  GlobalTensors weights;
};

void train(const Plan& plan, const Config& config, const MakeSource& source, Trained& result,
           index_t steps = 4) {
  with_trainer(
      plan, config,
      [&](Communicator& world, Machine&, Trainer& trainer) {
        for (index_t step = 0; step < steps; ++step) {
          world.ledger().clear();
          const StepReport report = trainer.step(kNoFlag);
          const std::string fault = difference(world.ledger(), trainer.predicted_step());
          if (!fault.empty()) throw std::runtime_error(fault);
          if (world.rank() != 0) continue;
          result.losses.push_back(report.loss);
          result.norms.push_back(report.grad_norm);
        }
        collect(trainer.formation().model(), false, result.weights);
      },
      source);
}

/// Of losses, of the gradients' lengths and of weights; relative, weights to 1.
double largest_difference(const Trained& a, const Trained& b) {
  double most = a.losses.size() == b.losses.size() ? 0 : 1e9;
  for (std::size_t at = 0; at < a.losses.size(); ++at) {
    most = std::max(most, std::abs(a.losses[at] / b.losses[at] - 1));
    most = std::max(most, std::abs(a.norms[at] / b.norms[at] - 1));
  }
  for (const auto& [name, values] : a.weights.values)
    for (std::size_t at = 0; at < values.size(); ++at)
      most = std::max(most, std::abs(values[at] - b.weights.values.at(name)[at]));
  return most;
}

/// Very unequal; the last two samples of each step, and one in the middle, count nothing.
const Counts kCounts{7, 3, 7, 0, 1, 7, 5, 0, 0};

/// Says how often somebody looked at which targets of a sample count.
class Watched final : public TokenSource {
 public:
  Watched(std::shared_ptr<TokenSource> tokens, std::atomic<index_t>& looks)
      : tokens_(std::move(tokens)), looks_(looks) {}
  [[nodiscard]] index_t size() const override { return tokens_->size(); }
  [[nodiscard]] index_t vocab() const override { return tokens_->vocab(); }
  [[nodiscard]] double bytes_per_token() const override { return 1; }
  void read(index_t first, index_t count, std::int32_t* out) override {
    tokens_->read(first, count, out);
  }
  [[nodiscard]] bool partial_loss() const override { return true; }
  void read_counts(index_t first, index_t count, std::uint8_t* out) override {
    (void)first;
    ++looks_;
    std::fill_n(out, count, std::uint8_t{1});
  }
  [[nodiscard]] std::string describe() const override { return "watched"; }

 private:
  std::shared_ptr<TokenSource> tokens_;
  std::atomic<index_t>& looks_;
};

}  // namespace

TEST_CASE("the reader counts what it marks", "[masked_targets]") {
  const auto source = samples(kCounts, 90);
  CHECK(source->ignores());
  for (index_t first = 0; first < 12; ++first) {
    std::vector<std::int32_t> ids(5 * kContext), targets(5 * kContext);
    source->read(first, 5, ids.data(), targets.data());
    index_t counted = 0, wanted = 0;
    for (std::size_t at = 0; at < targets.size(); ++at) {
      if (targets[at] >= 0) ++counted;
      CHECK(targets[at] != kIgnored);
      CHECK(ids[at] >= 0);
    }
    for (index_t n = first; n < first + 5; ++n) wanted += kCounts[static_cast<std::size_t>(n % 9)];
    CHECK(counted == wanted);
    CHECK(source->targets(first, 5) == wanted);
  }
  CHECK(source->targets(0, 0) == 0);
}

TEST_CASE("replicas of unequal shares train as one replica, to every counted target",
          "[masked_targets]") {
  for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::sum}) {
    const Config config = input(9, method);
    Trained one;
    train(plan_for(config, {{1, 1, 1}}, {9}), config, samples_of(kCounts), one);
    CHECK(one.losses.back() < one.losses.front());
    const std::vector<std::tuple<std::vector<Cuboid>, Counts, index_t>> all{
        {{{1, 1, 1}, {1, 1, 1}}, {6, 3}, 0},
        {{{1, 1, 1}, {1, 1, 1}}, {2, 7}, 3},
        {{{1, 1, 1}, {1, 1, 1}}, {9, 0}, 0},                // one has no samples
        {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {5, 2, 2}, 0},  // one has samples that count nothing
        {{{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {1, 3, 5}, 2},
        {{{2, 1, 1}, {1, 2, 1}}, {1, 2, 6}, 0},
        {{{2, 1, 1}, {1, 1, 2}}, {5, 2, 2}, 0}};
    for (const auto& [cuboids, slabs, micro] : all) {
      Trained several;
      train(plan_for(config, cuboids, slabs, micro), config, samples_of(kCounts), several);
      INFO(method << ", " << cuboids.size() << " replicas, first slab " << slabs[0] << ", micro "
                  << micro);
      CHECK(largest_difference(several, one) < 1e-12);
    }
  }
}

TEST_CASE("samples that count nothing change nothing", "[masked_targets]") {
  const Config without = input(3), with = input(5);
  Trained a, b;
  train(plan_for(without, {{1, 1, 1}}, {3}), without, samples_of({7, 2, 5}), a);
  train(plan_for(with, {{1, 1, 1}, {1, 1, 1}}, {2, 3}), with, samples_of({7, 0, 2, 0, 5}), b);
  CHECK(largest_difference(a, b) < 1e-12);
}

// Weights by samples would make the second leaf twice as heavy.
TEST_CASE("leaves of adasum weigh what they count", "[masked_targets]") {
  for (const AggregatePlacement placement :
       {AggregatePlacement::pre, AggregatePlacement::gain, AggregatePlacement::post})
    for (const AggregateAlgorithm algorithm :
         {AggregateAlgorithm::gram, AggregateAlgorithm::flat}) {
      Config without = input(2, AggregateMethod::adasum);
      without.aggregate.placement = placement;
      without.aggregate.algorithm = algorithm;
      Config with = without;
      with.batch.sequences = 3;
      Trained a, b;
      train(plan_for(without, {{1, 1, 1}, {1, 1, 1}}, {1, 1}), without, samples_of({7, 3}), a);
      train(plan_for(with, {{1, 1, 1}, {1, 1, 1}}, {1, 2}), with, samples_of({7, 0, 3}), b);
      INFO(placement << ", " << algorithm);
      CHECK(largest_difference(a, b) < 1e-12);
    }
}

TEST_CASE("a leaf that counts nothing is left out", "[masked_targets]") {
  for (const AggregatePlacement placement :
       {AggregatePlacement::pre, AggregatePlacement::gain, AggregatePlacement::post}) {
    Config two = input(2, AggregateMethod::adasum);
    two.aggregate.placement = placement;
    two.aggregate.algorithm = AggregateAlgorithm::gram;
    Config three = two;
    three.batch.sequences = 3;
    Trained a, b;
    train(plan_for(two, {{1, 1, 1}, {1, 1, 1}}, {1, 1}), two, samples_of({7, 3}), a);
    train(plan_for(three, {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}}, {1, 1, 1}), three,
          samples_of({7, 0, 3}), b);
    INFO(placement);
    // After local steps the length is the mean over all leaves, with or without samples.
    if (placement == AggregatePlacement::post) b.norms = a.norms;
    CHECK(largest_difference(a, b) < 1e-12);
  }
}

TEST_CASE("a gain to the power of 0 is the mean over targets", "[masked_targets]") {
  Config config = input(9);
  Trained one, several;
  train(plan_for(config, {{1, 1, 1}}, {9}), config, samples_of(kCounts), one);
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = AggregatePlacement::gain;
  config.aggregate.gain_exponent = 0;
  train(plan_for(config, {{1, 1, 1}, {2, 1, 1}}, {3, 2, 4}), config, samples_of(kCounts), several);
  CHECK(largest_difference(several, one) < 1e-12);
}

// Parallel gradients make their weighted mean, here: themselves.
TEST_CASE("leaves with equal gradients make that gradient, whatever they weigh",
          "[masked_targets]") {
  Config config = input(1);
  Trained one, two;
  const auto same = [](index_t copies) {
    return [copies](const Config&) {
      std::vector<std::int32_t> ids;
      for (index_t n = 0; n < 30 * copies; ++n)
        for (index_t at = 0; at < kContext; ++at)
          ids.push_back(at == 0 ? kIgnored : static_cast<std::int32_t>(at * at % 60 + 1));
      ids.push_back(kIgnored);
      return std::make_shared<BatchSource>(make_memory_source(ids, 61), kContext, 1, false,
                                           kIgnored);
    };
  };
  train(plan_for(config, {{1, 1, 1}}, {1}), config, same(1), one);
  config.batch.sequences = 3;
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = AggregatePlacement::pre;
  train(plan_for(config, {{1, 1, 1}, {1, 1, 1}}, {1, 2}), config, same(3), two);
  CHECK(largest_difference(two, one) < 1e-12);
}

namespace {

/// What a run did whose third step has no target that counts.
struct Passed {
  std::vector<StepReport> reports;
  GlobalState before, after;  // that step
  std::string remarks;
  index_t updates = 0;
};

MakeSource empty_third_step() {
  Counts counts(15, 4);
  counts[6] = counts[7] = counts[8] = 0;
  return samples_of(counts);
}

void train_past(const Plan& plan, const Config& config, Passed& run) {
  Remarks remarks;
  with_trainer(
      plan, config,
      [&](Communicator& world, Machine&, Trainer& trainer) {
        for (index_t step = 1; step <= 5; ++step) {
          if (step == 3) run.before.add(trainer.parts(), remarks);
          world.ledger().clear();
          const StepReport report = trainer.step(kNoFlag);
          const std::string bytes = difference(world.ledger(), trainer.predicted_step());
          if (!bytes.empty()) remarks.add(fmt::format("step {}: {}", step, bytes));
          if (step == 3) run.after.add(trainer.parts(), remarks);
          if (report.skipped != (step == 3) || std::isnan(report.loss) != (step == 3))
            remarks.add(fmt::format("rank {}: step {} skipped: {}, loss {}", world.rank(), step,
                                    report.skipped, report.loss));
          if (report.measured.first != (step == 1 || step == 2 || step == 4))
            remarks.add(fmt::format("step {}: the time of the one before", step));
          if (world.rank() == 0) run.reports.push_back(report);
        }
        if (trainer.progress().samples != 15) remarks.add("not all samples were counted");
        if (world.rank() == 0) run.updates = trainer.progress().updates;
      },
      empty_third_step());
  run.remarks = remarks.all();
}

}  // namespace

TEST_CASE("a step of which no target counts changes nothing but its number", "[masked_targets]") {
  const std::vector<std::tuple<std::vector<Cuboid>, Counts, int>> shapes{
      {{{1, 1, 1}}, {3}, 0},
      {{{1, 1, 1}, {2, 1, 1}}, {1, 1, 1}, 0},
      {{{1, 1, 1}, {1, 1, 2}}, {2, 1}, 4}};  // one rank is idle
  for (const AggregatePlacement placement :
       {AggregatePlacement::gain, AggregatePlacement::pre, AggregatePlacement::post})
    for (const AggregateMethod method : {AggregateMethod::mean, AggregateMethod::adasum}) {
      if (method == AggregateMethod::mean && placement != AggregatePlacement::pre) continue;
      Config config = input(3, method);
      config.optimizer.kind = OptimizerKind::adamw;
      config.aggregate.placement = placement;
      config.aggregate.algorithm = AggregateAlgorithm::gram;
      std::vector<double> losses;  // of the first shape
      for (const auto& [cuboids, slabs, ranks] : shapes) {
        INFO(method << ' ' << placement << ", " << cuboids.size() << " replicas, " << ranks);
        Plan plan = with_slab_sequences(plan_of_cuboids(config, cuboids, ranks), slabs, 0);
        plan.aggregate.reference_batch = 2;
        Passed run;
        train_past(plan, config, run);
        CHECK(run.remarks == "");
        CHECK(run.before.difference(run.after) == "");
        CHECK(run.updates == 4);
        REQUIRE(run.reports.size() == 5);
        CHECK(run.reports[2].targets == 0);
        CHECK(run.reports[2].grad_norm == 0);
        for (std::size_t step = 0; step < 5; ++step) {
          const double loss = run.reports[step].loss;
          if (method == AggregateMethod::adasum || step == 2) continue;
          losses.resize(5);
          if (cuboids.size() == 1) losses[step] = loss;
          CHECK(loss == Approx(losses[step]).epsilon(1e-12));
        }
      }
    }
}

TEST_CASE("a corpus of which no target counts is refused", "[masked_targets]") {
  const Config config = input(3);
  Trained result;
  try {
    train(plan_for(config, {{1, 1, 1}, {1, 1, 1}}, {1, 2}), config, samples_of({0, 0}), result);
    CHECK(false);
  } catch (const Error& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK_THAT(error.what(), contains("no target of data.train counts"));
  }
}

// Of a text of zeros and ones: all targets, the zeros alone, the ones alone.
TEST_CASE("the validation counts what counts", "[masked_targets]") {
  const auto text = [](std::int32_t ignored) {
    std::vector<std::int32_t> ids;
    for (index_t at = 0; at < 20 * kContext + 1; ++at)
      ids.push_back(random_bits({43, 0}, at) % 5 == 0 ? 1 : 0);
    return std::make_shared<BatchSource>(make_memory_source(ids, 61), kContext, 1, false, ignored);
  };
  const Config config = input(4);
  for (const auto& [cuboids, slabs] :
       {std::pair{std::vector<Cuboid>{{1, 1, 1}}, Counts{4}},
        std::pair{std::vector<Cuboid>{{2, 1, 1}, {1, 1, 1}}, Counts{1, 1, 2}}}) {
    double all = 0, zeros = 0, ones = 0;
    with_trainer(
        plan_for(config, cuboids, slabs), config,
        [&](Communicator& world, Machine&, Trainer& trainer) {
          (void)trainer.step(kNoFlag);
          for (const auto& [ignored, loss] : {std::pair{-1, &all}, {1, &zeros}, {0, &ones}}) {
            const double value = trainer.evaluate(*text(ignored), 10);
            if (world.rank() == 0) *loss = value;
          }
        });
    const auto n = static_cast<double>(text(-1)->targets(0, 10));
    const auto n0 = static_cast<double>(text(1)->targets(0, 10));
    const auto n1 = static_cast<double>(text(0)->targets(0, 10));
    CHECK(n == 10 * kContext);
    CHECK(n0 + n1 == n);
    CHECK(n0 > 2 * n1);
    CHECK(std::abs(zeros - ones) > 1e-3);
    CHECK((n0 * zeros + n1 * ones) / n == Approx(all).epsilon(1e-12));
  }
}

TEST_CASE("ranks share the counting of targets", "[masked_targets]") {
  std::atomic<index_t> looks = 0;
  const auto source = [&](const Config&) {
    std::vector<std::int32_t> ids(1000, 1);
    return std::make_shared<BatchSource>(
        std::make_shared<Watched>(make_memory_source(ids, 61), looks), kContext, 1, false);
  };
  Trained result;
  const Config config = input(8);
  train(plan_for(config, std::vector<Cuboid>(4, Cuboid{1, 1, 1}), {2, 2, 2, 2}), config, source,
        result, 3);
  CHECK(looks == 3 * (8 + 8));  // once to count, once to read
}
