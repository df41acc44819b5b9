// How far a run has come (train/step/schedule.hpp): its length in steps or tokens, the learning
// rate, the samples that it reads, and its updates, also where the batch changes or steps are
// skipped.
#include <algorithm>
#include <cmath>

#include "support/catch.hpp"
#include "support/plan_rig.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

constexpr index_t kContext = 8;

constexpr std::array kKinds{ScheduleKind::constant, ScheduleKind::linear, ScheduleKind::cosine,
                            ScheduleKind::wsd};

ScheduleConfig schedule_of(ScheduleKind kind, index_t warmup) {
  ScheduleConfig schedule;
  schedule.kind = kind;
  schedule.warmup_steps = warmup;
  return schedule;
}

/// Goes on to the end of the course, or for `steps`; every factor on the way.
std::vector<double> factors(const Course& course, Progress& progress, index_t steps = 1 << 20) {
  std::vector<double> all;
  for (; steps > 0 && !course.ended(progress); --steps) {
    all.push_back(course.factor(progress));
    course.advance(progress, true);
  }
  return all;
}

/// Remembers which samples of a corpus in its own order are read.
class WatchedTokens final : public TokenSource {
 public:
  [[nodiscard]] index_t size() const override { return 4001; }
  [[nodiscard]] index_t vocab() const override { return 61; }
  [[nodiscard]] double bytes_per_token() const override { return 0; }
  void read(index_t first, index_t count, std::int32_t* out) override {
    const std::lock_guard lock(mutex_);
    samples_.push_back(first / kContext);
    for (index_t at = 0; at < count; ++at)
      out[at] = static_cast<std::int32_t>((first + at) * 7 % 61);
  }
  [[nodiscard]] std::string describe() const override { return "watched"; }
  /// Those read since the last call, in ascending order.
  [[nodiscard]] std::vector<index_t> take() {
    std::vector<index_t> taken = std::move(samples_);
    samples_.clear();
    std::sort(taken.begin(), taken.end());
    return taken;
  }

 private:
  std::mutex mutex_;
  std::vector<index_t> samples_;
};

std::vector<index_t> counted_from(index_t first, index_t count) {
  std::vector<index_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

}  // namespace

TEST_CASE("a run by tokens has the steps and factors of the equal number of steps, to the bit") {
  for (const ScheduleKind kind : kKinds)
    for (const index_t warmup : {0, 1, 7})
      for (const double tokens : {1.0, 64.0, 65.0, 4000.0, 6399.0, 6400.0}) {
        const ScheduleConfig schedule = schedule_of(kind, warmup);
        const index_t steps = static_cast<index_t>(std::ceil(tokens / (8 * kContext)));
        INFO(kind << ", warm-up " << warmup << ", tokens " << tokens);
        const Course course(schedule, {0, tokens}, kContext, 8);
        Progress progress;
        const std::vector<double> all = factors(course, progress);
        CHECK(progress.steps == steps);
        CHECK(progress.samples == 8 * steps);
        std::vector<double> expected;
        for (index_t step = 0; step < steps; ++step)
          expected.push_back(schedule_factor(schedule, step, steps));
        CHECK(all == expected);
      }
}

TEST_CASE("a run by steps goes by steps, whatever its batch") {
  for (const ScheduleKind kind : kKinds) {
    const ScheduleConfig schedule = schedule_of(kind, 5);
    Course course(schedule, {30, 0}, kContext, 8);
    Progress progress;
    std::vector<double> all = factors(course, progress, 12);
    course.set_sequences(3);
    for (const double factor : factors(course, progress)) all.push_back(factor);
    REQUIRE(all.size() == 30);
    for (index_t step = 0; step < 30; ++step)
      CHECK(all[static_cast<std::size_t>(step)] == schedule_factor(schedule, step, 30));
    CHECK(progress.samples == 12 * 8 + 18 * 3);
  }
}

TEST_CASE("of steps and tokens, what comes first ends the run") {
  for (const auto& [steps, tokens, expected] :
       {std::tuple{index_t{10}, 6400.0, 10}, {index_t{100}, 640.0, 10}, {index_t{10}, 640.0, 10}}) {
    const Course course(schedule_of(ScheduleKind::linear, 2), {steps, tokens}, kContext, 8);
    Progress progress;
    CHECK(course.steps(progress) == expected);
    (void)factors(course, progress);
    CHECK(progress.steps == expected);
  }
}

// 12,800 tokens = 200 steps of 8 sequences. What remains is divided by the new batch.
TEST_CASE("the learning rate of a run by tokens is continuous where the batch changes") {
  for (const ScheduleKind kind : kKinds)
    for (const index_t after : {1, 4, 12, 100})
      for (const index_t change : {3, 10, 50, 150, 190}) {
        INFO(kind << " to " << after << " after step " << change);
        Course course(schedule_of(kind, 10), {0, 12800}, kContext, 8);
        Progress progress;
        (void)factors(course, progress, change);
        const double before = course.factor(progress);
        course.set_sequences(after);
        // A run of whole steps ends up to one step later: its schedule is that much longer.
        const double grain =
            change < 10 ? 1e-12 : 3.0 * static_cast<double>(std::max<index_t>(after, 8)) / 1600;
        CHECK(course.factor(progress) ==
              Approx(before).margin(kind == ScheduleKind::constant ? 0 : grain));
        CHECK(course.steps(progress) ==
              change + static_cast<index_t>(std::ceil(static_cast<double>(1600 - 8 * change) /
                                                      static_cast<double>(after))));
        const std::vector<double> rest = factors(course, progress);
        CHECK(progress.samples >= 1600);
        CHECK(progress.samples - after < 1600);
        if (change < 10) continue;  // the warm-up goes on in steps
        CHECK(std::is_sorted(rest.rbegin(), rest.rend()));
        if (kind != ScheduleKind::constant && after < 100) CHECK(rest.back() < 0.2);
      }
}

TEST_CASE("a warm-up in which the batch changes still ends after its steps") {
  Course course(schedule_of(ScheduleKind::linear, 10), {0, 12800}, kContext, 8);
  Progress progress;
  std::vector<double> all = factors(course, progress, 4);
  course.set_sequences(16);
  for (const double factor : factors(course, progress, 7)) all.push_back(factor);
  for (index_t step = 0; step < 10; ++step)
    CHECK(all[static_cast<std::size_t>(step)] == Approx(static_cast<double>(step + 1) / 10));
  CHECK(progress.warm_samples == 4 * 8 + 6 * 16);
  CHECK(all[10] == Approx(1));
  for (const double factor : factors(course, progress)) CHECK(factor <= 1);
}

TEST_CASE("no sample is left out or read twice where the batch changes") {
  Config config = gpt_input();
  config.run.steps = 0;
  config.run.tokens = 100 * kContext;
  const auto tokens = std::make_shared<WatchedTokens>();
  const auto source = std::make_shared<BatchSource>(tokens, kContext, 1, false);
  config.batch.sequences = 8;
  const Plan eight = plan_of(config, Grid{2, 1, 1, {}, {}, {}}, 2);
  config.batch.sequences = 12;
  config.batch.micro = 4;
  config.batch.shares = {1, 2};
  const Plan twelve = plan_of(config, Grid{1, 1, 2, {}, {}, {}}, 2);
  std::map<std::string, std::string> texts;
  const auto steps = [&](Communicator& world, Trainer& trainer, index_t position) {
    world.barrier();
    if (world.rank() == 0) (void)tokens->take();
    world.barrier();
    (void)trainer.step(kNoFlag);
    world.barrier();
    if (world.rank() == 0) {
      std::vector<index_t> read = tokens->take();
      read.erase(std::unique(read.begin(), read.end()), read.end());  // by every rank of a slab
      CHECK(read == counted_from(position, trainer.plan().sequences()));
    }
    world.barrier();
  };
  const auto with = [&](const Plan& plan, const auto& body) {
    run_local_ranks(plan.ranks, [&](Communicator& world) {
      Machine machine(world, test_machine(config));
      Trainer trainer(machine, plan, train_options(config, 1), source);
      body(world, trainer);
    });
  };
  SECTION("in memory") {
    with(eight, [&](Communicator& world, Trainer& trainer) {
      steps(world, trainer, 0);
      steps(world, trainer, 8);
      (void)trainer.reshape(twelve);
      steps(world, trainer, 16);
      steps(world, trainer, 28);
      if (world.rank() == 0) CHECK(trainer.steps() == 4 + 5);  // 60 samples are left
    });
  }
  SECTION("at a continuation") {
    with(eight, [&](Communicator& world, Trainer& trainer) {
      steps(world, trainer, 0);
      steps(world, trainer, 8);
      if (world.rank() == 0) texts = trainer.texts();
    });
    for (const bool says : {true, false}) {  // checkpoints of earlier versions do not count samples
      if (!says) texts.erase("samples");
      with(twelve, [&](Communicator& world, Trainer& trainer) {
        const std::vector<TensorPart> parts = trainer.parts();
        trainer.restore(2, texts, 8);
        steps(world, trainer, 16);
        steps(world, trainer, 28);
        if (world.rank() == 0) CHECK(trainer.steps() == 4 + 5);
      });
    }
  }
}

// Adam's first update changes a weight by the learning rate; with moments of one step but the bias
// correction of a later one it would be shorter: 0.735 of it after one skipped step.
TEST_CASE("steps that an overflow skips do not count as updates") {
  Config config = gpt_input();
  config.precision.compute = ComputeType::fp16;
  config.precision.backend = BackendRule::reference;
  config.optimizer.weight_decay = 0;
  config.optimizer.clip_norm = 0;
  config.optimizer.eps = 1e-30;
  config.optimizer.lr = 1e-3;
  config.schedule.kind = ScheduleKind::constant;
  for (const int ranks : {1, 2}) {
    const Plan plan = plan_of(config, Grid{ranks, 1, 1, {}, {}, {}});
    double largest = 0;
    index_t skipped = 0;
    with_trainer(plan, config, [&](Communicator& world, Machine&, Trainer& trainer) {
      std::vector<TensorPart> parts = trainer.parts();
      trainer.restore(0, {{"loss_scale", "1e12 0"}}, 5);
      const auto weights = [&] {
        std::vector<float> all;
        for (const TensorPart& part : trainer.parts())
          for (const auto& [box, offset] : part.boxes) {
            if (part.name.starts_with("optimizer/")) continue;
            const auto* first = static_cast<const float*>(part.data) + offset;
            all.insert(all.end(), first, first + box.rows * box.cols);
          }
        return all;
      };
      const std::vector<float> before = weights();
      StepReport report = trainer.step(kNoFlag);
      while (report.skipped && trainer.progress().steps < 60) {
        if (weights() != before) throw_error(ExitCode::internal, "a skipped step changed weights");
        report = trainer.step(kNoFlag);
      }
      if (world.rank() != 0) return;
      const std::vector<float> after = weights();
      for (std::size_t at = 0; at < after.size(); ++at)
        largest = std::max(largest, static_cast<double>(std::abs(after[at] - before[at])));
      skipped = trainer.progress().steps - 1;
      CHECK(trainer.progress().updates == 1);
      CHECK(trainer.progress().samples == 5 * trainer.progress().steps);
    });
    CHECK(skipped > 3);
    CHECK(skipped < 59);
    CHECK(largest == Approx(1e-3).epsilon(0.01));
  }
}

TEST_CASE("replicas without samples take part in an evaluation, and it ends") {
  Config config = gpt_input();
  config.batch.shares = {0, 1};
  const Plan plan = plan_of(config, Grid{1, 1, 2, {}, {}, {}}, 2);
  Config even = gpt_input();
  const Plan other = plan_of(even, Grid{}, 2);
  std::vector<double> losses;
  for (const Plan& each : {plan, other})
    with_trainer(each, config, [&](Communicator& world, Machine&, Trainer& trainer) {
      const double loss = trainer.evaluate(*corpus(config), 11);
      if (world.rank() == 0) losses.push_back(loss);
    });
  CHECK(losses[0] == Approx(losses[1]).epsilon(1e-5));
}
