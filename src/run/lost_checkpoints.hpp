// Checkpoints that the records of a run's lives tell of and that are not there any more: a purged
// scratch folder is not a new run.
#pragma once
#include <string>

namespace t3d {

/// One process. `run`, `checkpoints`: the folders of a run that continues by itself. `found`: it
/// has a checkpoint to go on from. Without one, Error(io) where an earlier life had one. With one,
/// a warning where an earlier life had a later one; else "".
[[nodiscard]] std::string check_lost_checkpoints(const std::string& run,
                                                 const std::string& checkpoints, bool found);

}  // namespace t3d
