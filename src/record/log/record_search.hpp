// Where in a long log of steps the records up to one step end. Steps rise in such a file: halving
// it finds the place with a few reads, however long the file is. Internal to `io`.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/types.hpp"

namespace t3d {

/// The step of a line; nothing where it is no record.
using StepOfLine = std::optional<index_t> (*)(std::string_view line);

struct FoundRecords {
  index_t bytes = 0;            // where they end
  std::optional<index_t> last;  // step of the last of them
};

/// The lines from byte `from` on, up to the last record whose step is at most `last_step`; where
/// there is none they end at `from`. Error(io).
[[nodiscard]] FoundRecords find_records(const std::string& path, StepOfLine step_of,
                                        index_t last_step, index_t from = 0);

/// The step of the first record; nothing where there is none. Error(io).
[[nodiscard]] std::optional<index_t> first_record(const std::string& path, StepOfLine step_of);

}  // namespace t3d
