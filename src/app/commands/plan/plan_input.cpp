#include "app/commands/plan/plan_input.hpp"

#include "app/config/defaults.hpp"

namespace t3d {

std::string planned_input(Config config, const Origins& origins, const FoundPlan& found,
                          const std::string& plan_file) {
  const Plan& plan = found.plan;
  // No keys express the widths of mixed classes.
  if (found.parts.size() > 1) config.mesh.plan = plan_file;
  config.mesh.replicas = std::ssize(plan.replicas);
  config.mesh.replicas_auto = config.mesh.cuboid_auto = false;
  config.mesh.cuboid = plan.replicas.front().cuboid;
  config.batch.micro = plan.largest_micro();
  config.batch.recompute = plan.recompute;
  // Computed of run.dir, which a run may be given another of: two must not share their checkpoints.
  if (!origins.contains("checkpoint.dir")) config.checkpoint.dir.clear();
  return resolved_text(config, origins);
}

}  // namespace t3d
