// What a run keeps of its steps, over restarts and lineages: one record per step of the lineage
// that is being written, in log.jsonl, log.csv and the folder tensorboard. Internal to `io`.
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

/// Leaves the records up to `start_step`, also in those logs that are not written this time: they
/// may be written again. Where a lineage begins, the log of the one before stays as
/// DIR/log.lineage-N.jsonl (.csv, tensorboard.lineage-N); where that one goes on after all, because
/// the new one came to no checkpoint, its log comes back. Durable; Error(io).
void prepare_step_logs(const std::string& dir, const LogLineage& lineage, index_t start_step);

}  // namespace t3d
