// What a checkpoint folder holds by its names: nothing in it is opened. For those who watch a run.
#pragma once
#include <optional>
#include <string>

#include "core/types.hpp"

namespace t3d {

struct CheckpointGlance {
  std::string path;
  index_t step = 0, lineage = 0;
  double written = 0;  // seconds since 1970
};

/// The published checkpoint of the most steps in `lineage`, else in the newest one; nothing where
/// there is none. Whether it is whole shows when it is read. Error(io) when the folder cannot be
/// looked at.
[[nodiscard]] std::optional<CheckpointGlance> newest_published(const std::string& dir,
                                                               std::optional<index_t> lineage = {});

}  // namespace t3d
