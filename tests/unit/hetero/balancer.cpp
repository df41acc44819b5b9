// The balancer, fed with the reports that steps of ranks of known speeds would give
// (hetero/balance/balancer.hpp).
#include "hetero/balance/balancer.hpp"

#include <functional>

#include "core/random.hpp"
#include "hetero/cost/memory.hpp"
#include "hetero/planner/slab_sequences.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "support/planner_case.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

using Counts = std::vector<index_t>;

/// Steps of a run without ranks: rank r needs seconds_of(r, its sequences, step), and the
/// balancer's answers take effect. As in a run, the times that a step reports are those of the step
/// before.
class Steps {
 public:
  using SecondsOf = std::function<RankTimes(int rank, index_t sequences, index_t step)>;

  Steps(Plan start, const BalanceOptions& options, index_t micro = 0, RankFacts facts = {},
        std::optional<Speeds> known = {})
      : plan(std::move(start)),
        balancer(options, micro, facts_for(plan.ranks, std::move(facts)), std::move(known)) {}

  /// Of so many ranks: what is not given is false or not known.
  static RankFacts facts_for(int ranks, RankFacts facts) {
    facts.crowded.resize(static_cast<std::size_t>(ranks));
    facts.room_bytes.resize(facts.crowded.size());
    facts.on_gpu.resize(facts.crowded.size());
    return facts;
  }

  /// Changes of plan within so many steps.
  index_t steps(index_t count, const SecondsOf& seconds_of) {
    index_t changes = 0;
    for (index_t last = step_ + count; step_ < last; ++step_) {
      StepReport report;
      report.step = step_;
      report.plan = changes_;
      report.measured = measured_;
      report.times = times_;
      const std::optional<Plan> next = balancer.observe(report, plan);
      measure(seconds_of);
      if (!next) continue;
      plan = *next;
      fresh_ = true;
      first_change = first_change == 0 ? step_ : first_change;
      ++changes_, ++changes;
    }
    return changes;
  }

  Plan plan;
  Balancer balancer;
  index_t first_change = 0;   // the step after which it came
  bool always_first = false;  // every step is said to be the first under its plan
  bool stale = false;         // times are said to be those of another plan

 private:
  void measure(const SecondsOf& seconds_of) {
    const Counts slabs = slab_sequences(plan);
    const MeshShape mesh = plan.mesh();
    const std::vector<int> active = plan.active();
    times_.assign(static_cast<std::size_t>(plan.ranks), {});
    std::size_t before = 0;
    for (index_t d = 0; d < std::ssize(plan.replicas); ++d) {
      const auto& [p, q, r] = plan.replica(d).cuboid;
      for (index_t i = 0; i < p; ++i)
        for (index_t j = 0; j < q; ++j)
          for (index_t k = 0; k < r; ++k) {
            const int number = mesh.seen_from(d).rank_of({d, i, j, k});
            const int rank = active[static_cast<std::size_t>(number)];
            times_[static_cast<std::size_t>(rank)] =
                seconds_of(rank, slabs[before + static_cast<std::size_t>(i)], step_);
          }
      before += static_cast<std::size_t>(p);
    }
    measured_ = {step_, stale ? -1 : changes_, 1, slabs, always_first || fresh_};
    fresh_ = false;
  }

  index_t step_ = 1, changes_ = 0;
  bool fresh_ = true;
  MeasuredStep measured_;
  std::vector<RankTimes> times_;
};

/// Seconds per sequence by rank, with noise of the relative size `noise`.
Steps::SecondsOf ranks_of_costs(std::vector<double> costs, double noise = 0) {
  return [costs, noise](int rank, index_t sequences, index_t step) {
    const double draw = random_uniform({11, static_cast<std::uint64_t>(rank)}, step) - 0.5;
    RankTimes times;
    times.own =
        costs[static_cast<std::size_t>(rank)] * static_cast<double>(sequences) * (1 + noise * draw);
    times.matmul = times.cpu = times.own;
    return times;
  };
}

Config input(index_t sequences) {
  Config config = gpt_input();
  config.batch.sequences = sequences;
  return config;
}

const BalanceOptions kModel;

/// Steps until a change that is seen at once has been confirmed: the first report has no times, the
/// first times are those of a first step, then half a window and the confirmations, the first of
/// them with its last step.
index_t steps_to_react(const BalanceOptions& options) {
  return 2 + options.window / 2 + options.confirm;
}

}  // namespace

TEST_CASE("a change that makes the whole step longer is taken back, though ranks compute less",
          "[balancer]") {
  const Plan even = plan_of(input(12), Grid{2, 1, 1, {}, {}, {}});
  for (const bool longer : {false, true}) {
    Steps run(even, kModel);
    const auto costs = ranks_of_costs({0.01, 0.02});
    // Messages of other shares take three times as long, say.
    const auto with_messages = [&](int rank, index_t sequences, index_t step) {
      RankTimes times = costs(rank, sequences, step);
      const bool changed = sequences != 6;
      times.step = (changed ? 0.08 : 0.12) + (changed && longer ? 0.15 : 0.05);
      return times;
    };
    while (run.first_change == 0) (void)run.steps(1, with_messages);
    CHECK(slab_sequences(run.plan) == Counts{8, 4});
    CHECK(run.steps(3 * kModel.window, with_messages) == (longer ? 1 : 0));
    CHECK(slab_sequences(run.plan) == (longer ? Counts{6, 6} : Counts{8, 4}));
  }
}

TEST_CASE("of two slabs the slow one gets half of what the other one gets", "[balancer]") {
  const Config config = input(12);
  for (const Plan& plan :
       {plan_of(config, Grid{2, 1, 1, {}, {}, {}}), plan_of(config, Grid{1, 1, 1, {}, {}, {}}, 2),
        plan_of_cuboids(config, {{1, 1, 1}, {1, 1, 1}}, 3)}) {
    INFO(plan.mesh().describe());
    Steps run(plan, kModel);
    CHECK(run.steps(40, ranks_of_costs({0.01, 0.02, 0})) == 1);
    CHECK(slab_sequences(run.plan) == Counts{8, 4});
    CHECK(run.first_change <= steps_to_react(kModel));
    CHECK(plan.same_parameters(run.plan));
    CHECK_THAT(run.balancer.reason(), contains("slowest is replica"));
  }
}

TEST_CASE("a rank that becomes slow in the middle is relieved, and gets its part back",
          "[balancer]") {
  Steps run(plan_of(input(12), Grid{2, 1, 1, {}, {}, {}}), kModel);
  CHECK(run.steps(30, ranks_of_costs({0.01, 0.01}, 0.01)) == 0);
  CHECK(run.steps(10, ranks_of_costs({0.01, 0.02}, 0.01)) == 1);
  CHECK(slab_sequences(run.plan) == Counts{8, 4});
  (void)run.steps(40, ranks_of_costs({0.01, 0.01}, 0.01));
  CHECK(slab_sequences(run.plan) == Counts{6, 6});
}

TEST_CASE("of a slab of several ranks the slowest one counts", "[balancer]") {
  Steps run(plan_of(input(12), Grid{2, 2, 1, {}, {}, {}}), kModel);
  CHECK(run.steps(40, ranks_of_costs({0.01, 0.01, 0.005, 0.02})) == 1);
  CHECK(slab_sequences(run.plan) == Counts{8, 4});
}

TEST_CASE("slabs of different replicas, of different sizes, are one list", "[balancer]") {
  const Plan plan = plan_of_cuboids(input(20), {{2, 1, 1}, {1, 2, 1}});
  Steps run(plan, kModel);
  CHECK(run.steps(40, ranks_of_costs({0.01, 0.02, 0.005, 0.005})) >= 1);
  const Counts slabs = slab_sequences(run.plan);
  CHECK(slabs == Counts{6, 3, 11});
}

// Of 1000 sequences 24 more for the faster one would save more than min_gain.
TEST_CASE("ranks within 5 % of each other keep the even plan for ever", "[balancer]") {
  for (const double noise : {0.0, 0.01})
    for (const index_t sequences : {12, 100, 1000}) {
      INFO(sequences << " sequences, noise " << noise);
      Steps run(plan_of(input(sequences), Grid{2, 1, 1, {}, {}, {}}), kModel);
      CHECK(run.steps(1000, ranks_of_costs({0.01, 0.0104}, noise)) == 0);
    }
  const Plan even = plan_of(input(1000), Grid{2, 1, 1, {}, {}, {}});
  Steps same(even, kModel);
  CHECK(same.steps(100, ranks_of_costs({0.01, 0.01048})) == 0);
  Steps other(even, kModel);
  CHECK(other.steps(100, ranks_of_costs({0.01, 0.0106})) > 0);
  // Whoever has an uneven plan gets the even one.
  Steps back(with_slab_sequences(even, Counts{600, 400}, 0), kModel);
  CHECK(back.steps(100, ranks_of_costs({0.01, 0.01048})) == 1);
  CHECK(slab_sequences(back.plan) == Counts{500, 500});
}

TEST_CASE("off never changes anything", "[balancer]") {
  const Plan plan = plan_of(input(24), Grid{2, 1, 1, {}, {}, {}});
  Steps off(plan, {BalanceKind::off});
  CHECK(off.steps(100, ranks_of_costs({0.01, 0.03})) == 0);
  CHECK(off.balancer.reason().empty());
}

TEST_CASE("one slab alone, and steps that report no times, change nothing", "[balancer]") {
  Steps one(plan_of(input(12), Grid{1, 2, 1, {}, {}, {}}), kModel);
  CHECK(one.steps(50, ranks_of_costs({0.01, 0.03})) == 0);
  const Plan plan = plan_of(input(12), Grid{2, 1, 1, {}, {}, {}});
  Balancer balancer(kModel, 0, Steps::facts_for(2, {}));
  for (index_t step = 1; step < 50; ++step) CHECK(!balancer.observe(StepReport{}, plan));
}

TEST_CASE("where ranks share cores their CPU time counts", "[balancer]") {
  const Plan plan = plan_of(input(12), Grid{2, 1, 1, {}, {}, {}});
  // By the wall clock rank 1 is slow, by its CPU time it is not; and the other way round.
  const auto times = [](double own, double cpu) {
    return [own, cpu](int rank, index_t sequences, index_t) {
      const auto n = static_cast<double>(sequences);
      RankTimes result;
      result.own = n * 0.01 * (rank == 1 ? own : 1);
      result.cpu = n * 0.01 * (rank == 1 ? cpu : 1);
      result.matmul = result.own;
      return result;
    };
  };
  Steps neighbours(plan, kModel, 0, {{true, true}, {}, {}});
  CHECK(neighbours.steps(50, times(2, 1)) == 0);
  Steps slow(plan, kModel, 0, {{true, true}, {}, {}});
  CHECK(slow.steps(50, times(1, 2)) == 1);
  CHECK(slab_sequences(slow.plan) == Counts{8, 4});
  Steps alone(plan, kModel);
  CHECK(alone.steps(50, times(1, 2)) == 0);
  // A GPU knows no CPU time.
  Steps gpu(plan, kModel, 0, {{true, true}, {}, {}});
  CHECK(gpu.steps(50, times(2, 0)) == 1);
}

// Descheduled half of the time, of four equal ranks: `other` is wall time.
TEST_CASE("where ranks share cores, what no sequence costs is CPU time, too", "[balancer]") {
  const Plan plan = plan_of(input(32), Grid{1, 1, 1, {}, {}, {}}, 4);
  const auto times = [](int rank, index_t sequences, index_t) {
    RankTimes result;
    result.matmul = 0.001 * static_cast<double>(sequences);
    result.cpu = result.matmul + 0.02;
    result.own = (rank < 2 ? 4 : 1) * result.cpu;
    result.other = result.own - result.matmul;
    return result;
  };
  Steps run(plan, kModel, 0, {std::vector<bool>(4, true), {}, {}});
  CHECK(run.steps(100, times) == 0);
}

TEST_CASE("Newton-Schulz is no cost of sequences", "[balancer]") {
  Config config = input(24);
  config.optimizer.kind = OptimizerKind::muon;
  const Plan plan = plan_of(config, Grid{1, 1, 1, {}, {}, {}}, 2);
  REQUIRE(step_work(plan, {0, 0, 0, 0}).whole > 0);
  const auto times = [](int rank, index_t sequences, index_t) {
    RankTimes result;
    result.matmul = (rank == 1 ? 0.03 : 0.01) * static_cast<double>(sequences);
    result.other = result.whole = 0.1;
    result.own = result.cpu = result.matmul + result.other;
    return result;
  };
  Steps run(plan, kModel);
  // At once, and not on the way there.
  CHECK(run.steps(60, times) == 1);
  CHECK(slab_sequences(run.plan) == Counts{18, 6});
}

TEST_CASE("whole leaves move, and keep their samples", "[balancer]") {
  Config config = input(24);
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = AggregatePlacement::gain;
  config.aggregate.leaves = 4;
  const Plan plan = plan_of_cuboids(config, {{2, 1, 1}, {1, 1, 1}});
  REQUIRE(leaf_unit(plan) == 3);
  // The second replica is one rank against two: 2 : 1 would be 16 : 8, in leaves of 3 it is 15 : 9.
  Steps run(plan, kModel);
  CHECK(run.steps(60, ranks_of_costs({0.02, 0.02, 0.02})) == 1);
  CHECK(run.plan.replica(0).sequences() == 15);
  CHECK(run.plan.replica(1).sequences() == 9);
  for (const ReplicaPlan& replica : run.plan.replicas)
    for (std::size_t leaf = 0; leaf < replica.leaves.size(); ++leaf)
      CHECK(replica.sequences_of(leaf) % 3 == 0);
  // Leaves of different sizes cannot move.
  config.batch.sequences = 25;
  Steps unequal(plan_of_cuboids(config, {{2, 1, 1}, {1, 1, 1}}), kModel);
  CHECK(unequal.steps(60, ranks_of_costs({0.02, 0.02, 0.05})) == 0);
}

// 4 replicas x 16 leaves are as many as Adasum combines.
TEST_CASE("leaves move only as far as there is room for leaves", "[balancer]") {
  Config config = input(64);
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = AggregatePlacement::gain;
  config.aggregate.leaves = 16;
  const Plan full = plan_of(config, Grid{1, 1, 1, {}, {}, {}}, 4);
  Steps none(full, kModel);
  CHECK(none.steps(60, ranks_of_costs({0.01, 0.01, 0.01, 0.06})) == 0);
  config.aggregate.leaves = 14;
  config.batch.sequences = 56;
  Steps some(plan_of(config, Grid{1, 1, 1, {}, {}, {}}, 4), kModel);
  (void)some.steps(200, ranks_of_costs({0.01, 0.01, 0.01, 0.06}));
  CHECK(slab_sequences(some.plan) == Counts{16, 16, 16, 8});
}

TEST_CASE("when whole leaves move, what was learned of the replicas stays", "[balancer]") {
  Config config = input(24);
  config.aggregate.method = AggregateMethod::adasum;
  config.aggregate.placement = AggregatePlacement::gain;
  config.aggregate.leaves = 6;
  const Plan plan = plan_of(config, Grid{1, 1, 1, {}, {}, {}}, 2);
  // Beyond 7 leaves replica 0 pages: the change is taken back, for which it must be remembered.
  const auto paging = [](int rank, index_t sequences, index_t) {
    const auto n = static_cast<double>(sequences);
    RankTimes times;
    times.own = times.matmul = times.cpu = n * (rank == 1 ? 0.02 : sequences > 14 ? 0.06 : 0.01);
    return times;
  };
  Steps run(plan, kModel);
  CHECK(run.steps(12, paging) == 1);
  CHECK(slab_sequences(run.plan) == Counts{16, 8});
  CHECK(!plan.same_parameters(run.plan));
  CHECK(run.steps(8, paging) == 1);
  CHECK(slab_sequences(run.plan) == Counts{12, 12});
  CHECK_THAT(run.balancer.reason(), contains("roll-back"));
}

TEST_CASE("first steps and times of another plan are no measurements", "[balancer]") {
  const Plan plan = plan_of(input(12), Grid{2, 1, 1, {}, {}, {}});
  Steps first(plan, kModel);
  first.always_first = true;
  CHECK(first.steps(50, ranks_of_costs({0.01, 0.03})) == 0);
  Steps stale(plan, kModel);
  stale.stale = true;
  CHECK(stale.steps(50, ranks_of_costs({0.01, 0.03})) == 0);
}

TEST_CASE("a slab whose single sequence would delay all others gets none, and comes back",
          "[balancer]") {
  Steps run(plan_of(input(12), Grid{3, 1, 1, {}, {}, {}}), kModel);
  (void)run.steps(60, ranks_of_costs({0.01, 0.01, 0.2}));
  CHECK(slab_sequences(run.plan) == Counts{6, 6, 0});
  (void)run.steps(400, ranks_of_costs({0.01, 0.01, 0.01}));
  CHECK(slab_sequences(run.plan) == Counts{4, 4, 4});
}

TEST_CASE("slabs without sequences do not keep the others from their balance", "[balancer]") {
  Speeds known;
  for (const double speed : {1.0, 1.0, 1.0, 0.01}) known.ranks.push_back(rank_speed(speed));
  Speeds dead = known;
  dead.ranks.back() = rank_speed(0);
  const Plan even = plan_of(input(12), Grid{4, 1, 1, {}, {}, {}});
  const Plan start = with_slab_sequences(even, Counts{4, 4, 4, 0}, 0);
  for (const auto& speeds : std::vector<std::optional<Speeds>>{known, dead, std::nullopt}) {
    INFO("known " << (speeds ? speeds->text() : "nothing"));
    Steps run(start, kModel, 0, {}, speeds);
    (void)run.steps(50, ranks_of_costs({0.02, 0.01, 0.01, 1}));
    CHECK(slab_sequences(run.plan) == Counts{2, 5, 5, 0});
  }
}

TEST_CASE("a slab without sequences is tried now and then, and seldom if that costs much",
          "[balancer]") {
  Speeds known;
  for (const double speed : {1.0, 1.0, 0.05}) known.ranks.push_back(rank_speed(speed));
  const Plan even = plan_of(input(12), Grid{3, 1, 1, {}, {}, {}});
  const Plan start = with_slab_sequences(even, Counts{6, 6, 0}, 0);
  Steps run(start, kModel, 0, {}, known);
  // It stays slow: there and back, each time twice as late.
  const index_t changes = run.steps(2000, ranks_of_costs({0.01, 0.01, 0.2}));
  CHECK(changes % 2 == 0);
  CHECK(changes >= 4);
  CHECK(changes <= 12);
  CHECK(slab_sequences(run.plan) == Counts{6, 6, 0});
  (void)run.steps(2500, ranks_of_costs({0.01, 0.01, 0.01}));
  CHECK(slab_sequences(run.plan) == Counts{4, 4, 4});
  // What is known to be able to do no work is never tried.
  known.ranks.back() = rank_speed(0);
  Steps never(start, kModel, 0, {}, known);
  CHECK(never.steps(2000, ranks_of_costs({0.01, 0.01, 0.01})) == 0);
}

TEST_CASE("with micro-batches the division is the nearest that whole sequences allow",
          "[balancer]") {
  Config config = input(24);
  config.batch.micro = 6;
  Steps run(plan_of(config, Grid{2, 1, 1, {}, {}, {}}), kModel, 6);
  (void)run.steps(60, ranks_of_costs({0.01, 0.02}));
  CHECK(slab_sequences(run.plan) == Counts{16, 8});
  CHECK(run.plan.largest_micro() == 6);
}

// Passes of 4 over two slabs: 8 + 8 or 12 + 4, and nothing between.
TEST_CASE("what micro-batches cannot divide is not asked for", "[balancer]") {
  Config config = input(16);
  config.batch.micro = 4;
  const Plan plan = plan_of(config, Grid{2, 1, 1, {}, {}, {}});
  Steps none(plan, kModel, 4);
  CHECK(none.steps(60, ranks_of_costs({0.01, 0.0145})) == 0);
  Steps all(plan, kModel, 4);
  CHECK(all.steps(60, ranks_of_costs({0.01, 0.022})) == 1);
  CHECK(slab_sequences(all.plan) == Counts{12, 4});
  CHECK_THAT(all.balancer.reason(), !contains("2 units move"));
  // What turns out worse is taken back, as without micro-batches.
  const auto paging = [](int rank, index_t sequences, index_t) {
    const auto n = static_cast<double>(sequences);
    RankTimes times;
    times.own = times.matmul = times.cpu = n * (rank == 1 ? 0.03 : sequences > 8 ? 0.06 : 0.01);
    return times;
  };
  Steps back(plan, kModel, 4);
  CHECK(back.steps(20, paging) == 2);
  CHECK(slab_sequences(back.plan) == Counts{8, 8});
}

TEST_CASE("micro-batches too small for the slabs: nothing changes, and one sentence says why",
          "[balancer]") {
  const auto costs = ranks_of_costs({0.01, 0.01, 0.018});
  for (const index_t micro : {2, 3}) {
    Config config = input(24);
    config.batch.micro = micro;
    const Plan plan = plan_of(config, Grid{3, 1, 1, {}, {}, {}});
    INFO(micro << " sequences");
    Steps run(plan, kModel, micro);
    CHECK(run.steps(15, costs) == 0);
    CHECK(run.balancer.hindrance().empty());  // may be noise
    CHECK(run.steps(30, costs) == 0);
    CHECK_THAT(run.balancer.hindrance(), contains("larger batch.micro"));
    CHECK(run.steps(60, costs) == 0);
    CHECK(run.balancer.hindrance().empty());
    CHECK(run.plan == plan);
  }
  const Config config = input(24);  // all at once: nothing hinders
  Steps run(plan_of(config, Grid{3, 1, 1, {}, {}, {}}), kModel);
  CHECK(run.steps(60, costs) == 1);
  CHECK(run.steps(60, costs) == 0);
  CHECK(run.balancer.hindrance().empty());
}

TEST_CASE("no rank gets more than its memory has room for", "[balancer]") {
  const Plan plan = plan_of(input(12), Grid{2, 1, 1, {}, {}, {}});
  const auto needed = [&](index_t first) {
    const Plan changed = with_slab_sequences(plan, Counts{first, 12 - first}, 0);
    const MemoryCost cost = memory_cost(changed, {0, 0, 0, 0});
    return cost.tensors_peak + cost.messages;
  };
  REQUIRE(needed(8) > needed(7));
  for (const auto& [room, slabs] : {std::pair{needed(8), Counts{8, 4}},
                                    {needed(8) - 1, Counts{7, 5}},
                                    {needed(6), Counts{6, 6}}}) {
    Steps run(plan, kModel, 0, {{}, {room, 0}, {}});
    (void)run.steps(60, ranks_of_costs({0.01, 0.02}));
    INFO(room << " bytes");
    CHECK(slab_sequences(run.plan) == slabs);
    // The limit is found when the change is due; what was measured until then still counts.
    const index_t again = slabs == Counts{7, 5} ? kModel.confirm : 0;
    if (slabs != Counts{6, 6}) CHECK(run.first_change == steps_to_react(kModel) + again);
  }
}
