// The table at the end of a run: where the time went, and whether the bytes are those predicted.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct PhaseRow {
  std::string name;
  double min_seconds = 0, average_seconds = 0, max_seconds = 0;  // over ranks, whole run
};

struct AxisRow {
  std::string axis;
  index_t counted_bytes = 0;
  std::optional<index_t> predicted_bytes;  // none where there is no formula
};

struct EndTable {
  std::string reason;  // why the run ended, in words
  index_t steps = 0;   // done by this start of the program
  double seconds = 0, tokens_per_second = 0;
  std::vector<std::string> remarks;  // a line each
  std::vector<PhaseRow> phases;
  std::vector<AxisRow> axes;
};

/// Several lines, each ended by a newline. What the phases leave of `seconds` is shown as "other".
[[nodiscard]] std::string end_table_text(const EndTable& table);

}  // namespace t3d
