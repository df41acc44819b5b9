// The plan that a life begins with: the checkpoint's where it still is one for the ranks that there
// are now, else the input's, or one by the ranks' speeds.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "hetero/speed/speeds.hpp"
#include "run/continuation.hpp"
#include "run/memory_room.hpp"
#include "run/node_kinds.hpp"
#include "run/plan_basis.hpp"
#include "train/machine.hpp"

namespace t3d {

struct LifePlan {
  Plan plan;
  std::optional<Speeds> speeds;  // that it was made from
  PlanBasis basis;               // what else it was made from; without a matmul rate
  MemoryRoom room;               // of this rank
  /// For the log, a line each: what has changed since the checkpoint, then why this plan.
  std::vector<std::string> notes;
  std::vector<std::string> candidates;  // with which the planner compared it
  std::string memory_warning;           // what it lacks of memory that is free now
};

/// Collective over machine.world(), before the rank has tensors; `from` learns whether its plan
/// stays. The same on every rank but for the room. Throws on all ranks alike: as
/// Continuation::make_plan(), plan_instead() and first_plan().
[[nodiscard]] LifePlan find_life_plan(Machine& machine, const Config& config,
                                      const Origins& origins, const NodeKinds& kinds,
                                      Continuation& from);

}  // namespace t3d
