// The probe against real steps: what it says of a step's compute time, that curves go through the
// work that step_work() counts, and that every place of every plan can be measured.
#include <cmath>
#include <functional>
#include <iostream>
#include <new>
#include <utility>

#include "core/thread_clock.hpp"
#include "hetero/speed/probe_pieces.hpp"
#include "hetero/speed/sample_statistics.hpp"
#include "ops/reference/reference_ops.hpp"
#include "support/catch.hpp"
#include "support/plan_rig.hpp"
#include "tensor3d/matrix_owners.hpp"
#include "train/probe/machine_probe.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

/// One rank, one thread, some milliseconds per step.
Config small_gpt() {
  Config config = gpt_input();
  config.model.layers = 2;
  config.model.hidden = 128;
  config.model.ffn = 512;
  config.model.vocab = 256;
  config.model.context = 128;
  config.batch.sequences = 8;
  return config;
}

/// The quickstart's model with fewer sequences.
Config small_llama() {
  Config config = llama_input();
  config.model.layers = 4;
  config.model.hidden = 128;
  config.model.heads = 4;
  config.model.kv_heads = 4;
  config.model.ffn = 352;
  config.model.vocab = 2048;
  config.model.context = 128;
  config.batch.sequences = 4;
  return config;
}

ProbeBudget short_budget(double seconds) {
  ProbeBudget budget;
  budget.seconds = seconds;
  budget.cpu_time = true;  // other programs may have the cores
  return budget;
}

struct Comparison {
  double predicted = 0, measured = 0;  // seconds of a step's computing
};

/// In turns, so that other programs' load meets both.
Comparison compare(const Config& config) {
  const Plan plan = plan_of(config, 1);
  Comparison result;
  with_trainer(plan, config, [&](Communicator&, Machine& machine, Trainer& trainer) {
    std::vector<double> seconds;
    const auto run = [&](int steps) {
      for (int step = 0; step < steps; ++step) {
        const double start = thread_cpu_seconds();
        (void)trainer.step(kNoFlag);
        seconds.push_back(thread_cpu_seconds() - start);
      }
    };
    (void)trainer.step(kNoFlag);
    run(5);
    const RankSpeed speed = probe_machine(machine, plan, short_budget(0.8));
    run(5);
    result.predicted = speed.seconds(step_work(plan, Coord{}));
    result.measured = median_of(seconds);
  });
  return result;
}

/// Other programs may have the cores and caches at the moment: true where one of a few trials is.
bool sometimes(const std::function<bool()>& trial) {
  for (int n = 0; n < 6; ++n)
    if (trial()) return true;
  return false;
}

/// Counts what it is asked for.
class CountingOps final : public ReferenceOps {
 public:
  void gemm(Queue&, const GemmArgs& args) override {
    const index_t terms = args.transpose_a ? args.a.rows : args.a.cols;
    flops_ += 2.0 * static_cast<double>(args.c.count() * terms);
  }
  void attention_forward(Queue&, const AttentionArgs& args, TensorView, TensorView) override {
    flops_ += 2 * product(args);
  }
  void attention_backward(Queue&, const AttentionArgs& args, ConstTensorView, ConstTensorView,
                          ConstTensorView, TensorView) override {
    flops_ += 5 * product(args);
  }
  void add(double flops) { flops_ += flops; }
  double take() { return std::exchange(flops_, 0); }

 private:
  /// Causal: half of 2 x places x places.
  static double product(const AttentionArgs& args) {
    return static_cast<double>(args.sequences * args.length * args.length * args.heads *
                               args.head_size);
  }
  double flops_ = 0;
};

/// Where what the pieces do in a step differs from what step_work() counts.
std::string work_differences(const Plan& plan) {
  const auto device = make_cpu_device();
  const auto queue = device->make_queue();
  CountingOps ops;
  const ProbeMachine means{*device, ops, *queue, [&ops](TensorView x, index_t steps) {
                             ops.add(newton_schulz_flops(x.rows, x.cols, steps));
                           }};
  std::string differences;
  for (int rank = 0; rank < plan.mesh().ranks(); ++rank) {
    const Coord coord = plan.mesh().coord_of(rank);
    const ProbeShape shape(means, plan, coord);
    for (const WorkClass kind : {WorkClass::matmul, WorkClass::attention, WorkClass::whole}) {
      const double wanted = work_of(step_work(plan, coord), kind);
      if (wanted == 0) continue;
      for (const double scale : {0.5, 1.0, 2.0}) {
        const PieceSet set = shape.pieces(kind, scale);
        double done = 0;
        for (const Piece& piece : set.pieces) {
          (void)ops.take();
          piece.run();
          done += piece.calls * ops.take();
        }
        if (std::abs(done / set.work - 1) > 1e-9 ||
            (scale == 1 && std::abs(done / wanted - 1) > 1e-9))
          differences += fmt::format("rank {} {} x {}: done {} said {} of {}\n", rank,
                                     name_of(kind), scale, done, set.work, wanted);
      }
    }
  }
  return differences;
}

/// Every rank's probe of `plan`, each with a machine of its own.
std::vector<RankSpeed> probe_all(const Plan& plan, const Config& config, double seconds) {
  std::vector<RankSpeed> speeds(static_cast<std::size_t>(plan.ranks));
  run_local_ranks(plan.ranks, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    ProbeHooks hooks;
    hooks.together = [&world] { world.barrier(); };
    speeds[static_cast<std::size_t>(world.rank())] =
        probe_machine(machine, plan, short_budget(seconds), hooks);
    if (machine.device().memory().live != 0) throw std::runtime_error("memory was not given back");
  });
  return speeds;
}

/// What is missing in the speeds of a plan's ranks.
std::string faults_of(const Plan& plan, const std::vector<RankSpeed>& speeds) {
  std::string faults;
  for (std::size_t rank = 0; rank < speeds.size(); ++rank)
    for (const WorkClass kind : probed_classes(plan)) {
      const TimeCurve& curve = speeds[rank].curve(kind);
      bool sound = !curve.empty();
      for (const TimeCurve::Point& point : curve.points())
        sound = sound && point.work > 0 && point.seconds > 0 && std::isfinite(point.seconds);
      if (!sound) faults += fmt::format("rank {} {}\n", rank, name_of(kind));
    }
  return faults;
}

}  // namespace

TEST_CASE("the predicted seconds of a step are those of a real one") {
  for (const auto& [name, config] :
       {std::pair{"gpt", small_gpt()}, std::pair{"llama", small_llama()}})
    CHECK(sometimes([&name = name, &config = config] {
      const auto [predicted, measured] = compare(config);
      std::cout << fmt::format("{}: predicted {:.2f} ms, measured {:.2f} ms, ratio {:.3f}\n", name,
                               1e3 * predicted, 1e3 * measured, predicted / measured);
      return std::abs(predicted / measured - 1) < 0.25;
    }));
}

TEST_CASE("what is timed is the work that costs count") {
  for (const Grid& grid : all_grids()) {
    INFO(grid.text());
    CHECK(work_differences(plan_of(gpt_input(), grid)) == "");
    Config input = llama_input();
    input.batch.micro = 2;  // micro-batches of two sizes
    input.optimizer.kind = OptimizerKind::muon;
    input.batch.recompute = Recompute::block;
    CHECK(work_differences(plan_of(input, grid)) == "");
  }
}

TEST_CASE("curves go through the plan's own work, half and twice of it") {
  const Config config = small_gpt();
  const Plan plan = plan_of(config, 1);
  const StepWork work = step_work(plan, Coord{});
  RankSpeed speed;
  CHECK(sometimes([&] {
    speed = probe_all(plan, config, 1.2).front();
    bool doubles = true;
    for (const WorkClass kind : {WorkClass::matmul, WorkClass::attention, WorkClass::streamed}) {
      const double twice =
          speed.curve(kind).seconds(2 * work_of(work, kind)) / speed.seconds(kind, work);
      std::cout << fmt::format("{}: twice the work takes {:.2f} times as long\n", name_of(kind),
                               twice);
      // What streams may leave the cache.
      doubles = doubles && twice > 1.5 && twice < (kind == WorkClass::streamed ? 4 : 2.7);
      doubles = doubles && speed.curve(kind).points().size() == 3;  // none was left out for time
    }
    return doubles;
  }));
  for (const WorkClass kind : {WorkClass::matmul, WorkClass::attention, WorkClass::streamed}) {
    INFO(name_of(kind));
    const std::vector<TimeCurve::Point>& points = speed.curve(kind).points();
    REQUIRE(points.size() == 3);
    CHECK(std::abs(points[1].work / work_of(work, kind) - 1) < 1e-9);
  }
  CHECK(speed.device == "cpu");
  CHECK(speed.error > 0);
  CHECK(speed.error < 1);
  CHECK(speed.curve(WorkClass::whole).empty());
}

TEST_CASE("every place of every shape can be measured, also places without work and idle ranks") {
  for (const Grid& grid : all_grids()) {
    INFO(grid.text());
    const Config config = grid.ranks() % 2 == 0 ? gpt_input() : llama_input();
    const Plan plan = plan_of(config, grid, 1, grid.ranks() + 1);
    CHECK(faults_of(plan, probe_all(plan, config, 0.02)) == "");
  }
  Config heads = llama_input();
  heads.mesh.attention = AttentionRule::heads;
  const Plan cut = plan_of(heads, Grid{1, 1, 2, {}, {}, {}});
  REQUIRE(cut.replicas.front().attention == AttentionCut::heads);
  CHECK(faults_of(cut, probe_all(cut, heads, 0.02)) == "");
}

TEST_CASE("every optimizer, recomputation, dropout and 16 bits can be measured") {
  std::vector<Config> inputs(6, gpt_input());
  inputs[0].optimizer.kind = OptimizerKind::muon;
  inputs[1].optimizer.kind = OptimizerKind::lamb;
  inputs[2].optimizer.kind = OptimizerKind::sgd;
  inputs[3].batch.recompute = Recompute::block;
  inputs[4].model.dropout = 0.1;
  inputs[5].precision.compute = ComputeType::bf16;
  for (const Config& config : inputs) {
    const Plan plan = plan_of(config, Grid{2, 1, 1, {}, {}, {}});
    const std::vector<RankSpeed> speeds = probe_all(plan, config, 0.02);
    CHECK(faults_of(plan, speeds) == "");
    CHECK(speeds[0].curve(WorkClass::whole).empty() ==
          (config.optimizer.kind != OptimizerKind::muon));
  }
}

TEST_CASE("the time that was asked for is kept, also where one pass would take longer") {
  Config large = small_gpt();
  large.model.hidden = 768;
  large.model.ffn = 3072;
  large.model.context = 512;
  large.batch.sequences = 32;
  const Plan plan = plan_of(large, 1);
  const StepWork work = step_work(plan, Coord{});
  RankSpeed speed;
  CHECK(sometimes([&] {
    const double start = PhaseClock::now();
    speed = probe_all(plan, large, 0.6).front();
    const double elapsed = PhaseClock::now() - start;
    std::cout << fmt::format("{:.2f} s for a step of {:.0f} s, error {:.3f}\n", elapsed,
                             speed.seconds(work), speed.error);
    return elapsed < 0.9;
  }));
  CHECK(speed.seconds(work) > 5);
  CHECK(speed.curve(WorkClass::matmul).points().back().work < work_of(work, WorkClass::matmul));
}

TEST_CASE("an emulated slower rank has longer times") {
  const Config config = small_gpt();
  const Plan plan = plan_of(config, 1);
  const StepWork work = step_work(plan, Coord{});
  CHECK(sometimes([&] {
    std::vector<double> seconds;
    for (const double dilation : {1.0, 10.0})
      run_local_ranks(1, [&](Communicator& world) {
        Machine machine(world, test_machine(config));
        ProbeHooks hooks;
        hooks.dilation = dilation;
        seconds.push_back(probe_machine(machine, plan, short_budget(0.2), hooks).seconds(work));
      });
    return seconds[1] > 7 * seconds[0] && seconds[1] < 14 * seconds[0];
  }));
}

TEST_CASE("a rank that fails still meets the others before each class") {
  Config config = gpt_input();
  config.optimizer.kind = OptimizerKind::muon;
  const Plan plan = plan_of(config, 1);
  run_local_ranks(1, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    std::size_t meetings = 0;
    const ProbeMachine means{machine.device(), machine.ops(), machine.queue(),
                             [](TensorView, index_t) { throw std::bad_alloc(); }};
    ProbeHooks hooks;
    hooks.together = [&] { ++meetings; };
    CHECK_THROWS_AS(probe_rank(means, plan, 0, short_budget(0.05), hooks), std::bad_alloc);
    CHECK(meetings == probed_classes(plan).size());
    CHECK(machine.device().memory().live == 0);
  });
}
