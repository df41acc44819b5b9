// All of log.jsonl as columns: a number of each step under one key. For those who look at a whole
// run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "io/lives/missing_steps.hpp"

namespace t3d {

/// The values under one key; "phase_seconds.matmul" of an object, index 3 of a list. Exactly as
/// they were written.
struct LogColumn {
  std::string key;
  index_t index = -1;               // in the list that the key has; -1 = no list
  std::vector<std::uint32_t> rows;  // rising; where the log has a number
  std::vector<double> values;       // as many
};

struct LogColumns {
  /// One for each row, rising. A hole has a row for its first step and one for its last, where
  /// only the column "step" has a number.
  std::vector<double> steps;
  std::vector<LogColumn> columns;
  index_t lines = 0;         // of the file
  index_t no_records = 0;    // whole lines that are no record of a step: left out
  index_t out_of_order = 0;  // records of a step that is not behind the one before: left out
  MissingSteps missing;
  index_t hole_rows = 0;
  bool cut = false;         // the file ends in the middle of a line, which is left out
  bool emulated = false;    // some rank was made slower
  index_t step_stride = 1;  // only every so many lines have a row
  index_t rank_stride = 1;  // of which every so many rows have the ranks' own times
  index_t part_stride = 1;  // and every so many the parts of these

  [[nodiscard]] const LogColumn* find(const std::string& key, index_t index = -1) const;
};

/// What is more is thinned: of so many rows or values every n-th is kept. Rows with a validation
/// loss, the first and the last one are always there.
struct LogLimits {
  index_t rows = 100'000;
  index_t own_values = 2'000'000;  // of all ranks
  index_t part_values = 250'000;   // the same for each of cpu, matmul, attention, other
};

/// A file that is not there is empty. Error(io) when it cannot be read.
[[nodiscard]] LogColumns read_log_columns(const std::string& path, const LogLimits& limits = {});

}  // namespace t3d
