#include "train/probe/machine_probe.hpp"

#include "comm/mesh.hpp"
#include "train/optimizer/newton_schulz.hpp"

namespace t3d {

void with_probe_machine(Machine& machine, DType activation,
                        const std::function<void(const ProbeMachine&)>& work) {
  // A context for one rank alone: what is measured sends nothing.
  const auto alone = make_single_communicator();
  const Mesh mesh(*alone, MeshShape(1, 1, 1, 1));
  const Context context{machine.device(), machine.ops(),   machine.queue(), mesh,
                        *alone,           machine.clock(), activation};
  work({machine.device(), machine.ops(), machine.queue(),
        [&context](TensorView x, index_t steps) { newton_schulz(context, x, steps); }});
}

RankSpeed probe_machine(Machine& machine, const Plan& plan, const ProbeBudget& budget,
                        const ProbeHooks& hooks) {
  RankSpeed speed;
  with_probe_machine(machine, plan.activation(), [&](const ProbeMachine& means) {
    speed = probe_rank(means, plan, machine.world().rank(), budget, hooks);
  });
  return speed;
}

}  // namespace t3d
