// What a run keeps of its steps, over restarts and lineages: one record per step of the lineage
// that is being written, in log.jsonl, log.csv and the folder tensorboard. Internal to `io`.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Where the run that writes stands among the lineages of its checkpoints.
struct LogLineage {
  index_t number = 0;
  bool begins = false;  // with this start; nothing of it is on disk yet
  index_t parent = -1;  // lineage of the checkpoint that it began from; -1 = none in this folder
};

enum class StepForm { json, csv, events };

/// A log that could not be made ready.
struct StepLogFault {
  StepForm form = StepForm::json;
  std::string path, reason;
  /// It may be written; the steps before this life, which are in `source`, are missing. Else it
  /// has steps that are none of this run's and must not be written.
  bool usable = false;
  std::string source;
};

/// Leaves the records up to `start_step`, also in those logs that are not written this time: they
/// may be written again. What is behind them is cut off in place. Where a lineage begins, the log
/// of the one before stays as DIR/log.lineage-N.jsonl (.csv, tensorboard.lineage-N), and what the
/// new one needs of its parent's is copied; where that one goes on after all, because the new one
/// came to no checkpoint, its log comes back. Durable. Killed at any moment, the next start comes
/// to the same. What cannot be cut or copied is told; Error(io) where a log of another lineage
/// cannot be put aside: steps of two lineages would be in one log.
[[nodiscard]] std::vector<StepLogFault> prepare_step_logs(const std::string& dir,
                                                          const LogLineage& lineage,
                                                          index_t start_step);

}  // namespace t3d
