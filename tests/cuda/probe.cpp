// The probe of GPU ranks, and of CPU ranks beside them: on the rank's own device, at the plan's
// shapes.
#include <cmath>
#include <cstdlib>

#include "ops/registry.hpp"
#include "support/catch.hpp"
#include "support/emulated_gpus.hpp"
#include "support/plan_rig.hpp"
#include "train/probe/probe_speeds.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

Config input(OptimizerKind optimizer) {
  Config config = tiny_gpt();
  config.batch.sequences = 4;
  config.optimizer.kind = optimizer;
  config.mesh.device = DeviceRule::mixed;
  config.debug.watchdog_seconds = 60;
  return config;
}

/// What every rank of `plan` gets; where they differ, `remarks` says so.
Speeds probe(const Plan& plan, const Config& config, double seconds, Remarks& remarks) {
  Speeds speeds;
  run_local_ranks(plan.ranks, [&](Communicator& world) {
    Machine machine(world, test_machine(config));
    const index_t room = machine.device().capacity().free / machine.choice().sharers;
    const bool on_gpu = machine.choice().gpu >= 0;
    const std::string device(machine.device().name());
    ProbeBudget budget;
    budget.seconds = seconds;
    Speeds own;
    {
      const Formation formation(machine, plan, config.optimizer);
      own = probe_speeds(machine, formation, budget);
    }
    const RankSpeed& here = own.ranks[static_cast<std::size_t>(world.rank())];
    if (on_gpu && (here.free_bytes <= 0 || here.free_bytes > room)) remarks.add("not GPU memory");
    if (here.device != device) remarks.add("device " + here.device);
    if (machine.device().memory().live != 0) remarks.add("memory was not given back");
    if (world.rank() == 0) speeds = own;
  });
  return speeds;
}

std::string faults_of(const Plan& plan, const Speeds& speeds) {
  std::string faults;
  for (std::size_t rank = 0; rank < speeds.ranks.size(); ++rank)
    for (const WorkClass kind : probed_classes(plan)) {
      const TimeCurve& curve = speeds.ranks[rank].curve(kind);
      bool sound = !curve.empty();
      for (const TimeCurve::Point& point : curve.points())
        sound = sound && point.work > 0 && point.seconds > 0 && std::isfinite(point.seconds);
      const StepWork work = step_work(plan, Coord{});
      double before = 0;
      for (const double part : {0.25, 0.5, 1.0, 2.0, 4.0}) {
        const double seconds = curve.seconds(part * work_of(work, kind));
        sound = sound && std::isfinite(seconds) && seconds >= before && seconds > 0;
        before = seconds;
      }
      if (sound) continue;
      faults += fmt::format("rank {} {}, step {:g}:", rank, name_of(kind), work_of(work, kind));
      for (const TimeCurve::Point& point : curve.points())
        faults += fmt::format(" {:g} in {:g} s", point.work, point.seconds);
      faults += "\n";
    }
  return faults;
}

}  // namespace

TEST_CASE("a GPU rank beside CPU ranks is measured on its GPU") {
  show_gpus(1);
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::muon}) {
    const Config config = input(kind);
    const Plan plan = plan_of(config, Grid{1, 2, 1, {}, {}, {}}, 1, 3);  // the last one is idle
    Remarks remarks;
    const Speeds speeds = probe(plan, config, 1.5, remarks);
    CHECK(remarks.all() == "");
    CHECK(faults_of(plan, speeds) == "");
    CHECK(speeds.ranks[1].device == "cpu");
    CHECK(speeds.ranks[0].device != "cpu");
    CHECK(speeds.inside.beta_seconds_per_byte > 0);
  }
}

TEST_CASE("GPUs of their own, and ranks that share one") {
  for (const int gpus : {2, 1}) {
    show_gpus(gpus);
    Config config = input(OptimizerKind::adamw);
    config.mesh.device = DeviceRule::cuda;
    const Plan plan = plan_of(config, Grid{2, 1, 1, {}, {}, {}});
    Remarks remarks;
    const Speeds speeds = probe(plan, config, 1, remarks);
    CHECK(remarks.all() == "");
    CHECK(faults_of(plan, speeds) == "");
  }
}
