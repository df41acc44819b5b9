#include "train/probe/machine_probe.hpp"

#include "comm/mesh.hpp"
#include "train/optimizer/newton_schulz.hpp"

namespace t3d {

RankSpeed probe_machine(Machine& machine, const Plan& plan, const ProbeBudget& budget,
                        const ProbeHooks& hooks) {
  // A context for one rank alone: what is measured sends nothing.
  const auto alone = make_single_communicator();
  const Mesh mesh(*alone, MeshShape(1, 1, 1, 1));
  const Context context{machine.device(), machine.ops(),   machine.queue(),  mesh,
                        *alone,           machine.clock(), plan.activation()};
  const ProbeMachine means{
      machine.device(), machine.ops(), machine.queue(),
      [&context](TensorView x, index_t steps) { newton_schulz(context, x, steps); }};
  return probe_rank(means, plan, machine.world().rank(), budget, hooks);
}

}  // namespace t3d
