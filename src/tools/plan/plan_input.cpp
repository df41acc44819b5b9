#include "tools/plan/plan_input.hpp"

#include <fmt/format.h>

#include "config/defaults.hpp"
#include "forecast/axis_order.hpp"

namespace t3d {

bool checkpoints_are_free(const Origins& origins) {
  return !origins.contains("checkpoint.every_minutes") &&
         !origins.contains("checkpoint.every_steps");
}

std::string planned_input(Config config, const Origins& origins, const FoundPlan& found,
                          const SimulatedJob& job, const std::string& plan_file) {
  const Plan& plan = found.plan;
  // No keys express the widths of mixed classes.
  if (found.parts.size() > 1)
    config.mesh.plan = plan_file;
  else
    config.mesh.place = plan.place;
  config.mesh.replicas = std::ssize(plan.replicas);
  config.mesh.replicas_auto = config.mesh.cuboid_auto = false;
  config.mesh.cuboid = plan.replicas.front().cuboid;
  config.batch.micro = plan.largest_micro();
  config.batch.recompute = plan.recompute;
  if (checkpoints_are_free(origins))
    config.checkpoint.every_minutes = job.policy.interval_seconds / 60;
  // Computed of run.dir, which a run may be given another of: two must not share their checkpoints.
  if (!origins.contains("checkpoint.dir")) config.checkpoint.dir.clear();
  return resolved_text(config, origins);
}

std::string planned_file(const Plan& plan) {
  const std::optional<AxisOrder> order = other_order_of(plan);
  if (!order) return plan.text();
  return fmt::format(
             "# place: ranks are numbered along {}, innermost first (d: replicas), instead of k j "
             "i d:\n"
             "# so the step is shortest on the nodes that were planned for.\n",
             order_text(*order)) +
         plan.text();
}

}  // namespace t3d
