#include "tools/probe_operators.hpp"

#include "core/commas.hpp"
#include "device/host_limits.hpp"
#include "forecast/calibrate/plan_operators.hpp"
#include "forecast/cluster/operator_terms.hpp"
#include "hetero/speed/vendor_peak.hpp"
#include "io/posix_file.hpp"
#include "record/study/roofline.hpp"
#include "run/setup.hpp"
#include "train/probe/machine_probe.hpp"

namespace t3d {
namespace {

RooflinePoint point_of(const MeasuredOperator& one) {
  RooflinePoint point;
  point.kind = word_of(one.call.kind);
  const std::size_t columns = form_of(one.call.kind).columns.size();
  point.shape.assign(one.call.shape.begin(),
                     one.call.shape.begin() + static_cast<std::ptrdiff_t>(columns));
  point.times = one.call.times;
  point.flops = one.counts.flops;
  point.bytes = one.counts.bytes;
  point.seconds = one.seconds;
  point.error = one.error;
  return point;
}

/// Of rank 0, or of the first rank that has one where that is idle.
Coord first_place(const Plan& plan) {
  return plan.mesh().coord_of(plan.active_rank(0).value_or(0));
}

}  // namespace

std::string probe_operators(Machine& machine, const Plan& plan, const Config& config,
                            const std::string& file) {
  Communicator& world = machine.world();
  const bool on_gpu = machine.choice().gpu >= 0;
  PlanOperatorBudget budget;
  budget.cpu_time = !on_gpu && machine.threads() == 1;  // whoever else has the core now and then
  budget.dilation = train_options(config, world.size()).slowdown.factor(world.rank(), 1);
  PlanOperators found;
  with_probe_machine(machine, plan.activation(), [&](const ProbeMachine& means) {
    found = measure_plan_operators(means, plan.compute, step_calls(plan, first_place(plan)), budget,
                                   [&] { world.barrier(); });
  });
  std::string text;
  all_or_none(world, [&] {
    if (world.rank() != 0) return;
    Roofline roofline;
    roofline.name = config.run.name;
    roofline.plan = plan.hash();
    roofline.processor = processor_name();
    roofline.device = on_gpu ? machine.device().name() : "cpu";
    roofline.number_format = word_of(plan.compute);
    roofline.ranks = world.size();
    roofline.threads = on_gpu ? 0 : machine.threads();
    roofline.emulated = budget.dilation > 1;
    roofline.matmul_rate = found.matmul_rate;
    roofline.stream_rate = found.stream_rate;
    if (on_gpu)
      roofline.vendor_peak = vendor_peak(machine.device().name(), plan.compute, plan.matmul) /
                             machine.choice().sharers;
    for (const MeasuredOperator& one : found.operators) roofline.points.push_back(point_of(one));
    roofline.notes = found.notes;
    make_folder(folder_of(file));
    write_text_durably(file, roofline_text(roofline));
    text = fmt::format(
        "{} operators of plan {}: products at {} GFLOP/s at most, streams at {} GB/s; "
        "saved in {}\n",
        roofline.points.size(), roofline.plan, readable(roofline.matmul_rate / 1e9, 4),
        readable(roofline.stream_rate / 1e9, 4), file);
    for (const std::string& note : roofline.notes) text += fmt::format("note: {}\n", note);
  });
  return text;
}

}  // namespace t3d
