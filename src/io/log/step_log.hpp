// DIR/log.jsonl over restarts and lineages: one record per step of the lineage that is being
// written. Internal to `io`.
#pragma once
#include <string>

#include "core/types.hpp"

namespace t3d {

/// Where the run that writes stands among the lineages of its checkpoints.
struct LogLineage {
  index_t number = 0;
  bool begins = false;  // with this start; nothing of it is on disk yet
  index_t parent = -1;  // lineage of the checkpoint that it began from; -1 = none in this folder
};

/// Leaves in log.jsonl the records up to `start_step`. Where a lineage begins, the log of the one
/// before stays as DIR/log.lineage-N.jsonl; where that one goes on after all, because the new one
/// came to no checkpoint, its log comes back. Durable; Error(io).
void prepare_step_log(const std::string& dir, const LogLineage& lineage, index_t start_step);

}  // namespace t3d
