// The table at the end of a run: where the time went, which ranks are slow, and whether the bytes
// are those predicted.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/types.hpp"
#include "record/log/rank_history.hpp"

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

/// Medians over the steps of the run whose times were gathered.
struct RankRow {
  int rank = 0;
  std::string node;
  double own_seconds = 0;
  std::optional<double> on_core;  // of the own time, 0 to 1; none for GPUs and ranks without work
  double matmul_seconds = 0, attention_seconds = 0, other_seconds = 0;
  /// By speed, whatever work the rank was given: its own time against what its work takes where
  /// each of matmul, attention and other has the median rank's time per work (of two middles the
  /// faster). Where the history has no work: against the median rank's own time. Empty within 10
  /// %; else "faster (1.3x)", "slower (2.1x)", "slower (2.1x), on a core 48 % of its time" below 80
  /// %, "no work".
  std::string verdict;
};

struct RankTable {
  std::vector<RankRow> rows;
  index_t left_out = 0;  // ranks between the first and the second half of the rows
};

/// All ranks in their order; of more than 16 the 4 slowest, the slowest first, and the 4 fastest,
/// the fastest last. `nodes`: the name of each rank's node; missing ones are "-".
[[nodiscard]] RankTable rank_table(const RankHistory& history,
                                   const std::vector<std::string>& nodes);

struct EndTable {
  std::string reason;  // why the run ended, in words
  index_t steps = 0;   // done by this start of the program
  double seconds = 0, tokens_per_second = 0;
  std::vector<std::string> remarks;  // a line each
  std::vector<PhaseRow> phases;
  std::vector<AxisRow> axes;
  RankTable ranks = {};
};

/// Several lines, each ended by a newline. What the phases leave of `seconds` is shown as "other".
[[nodiscard]] std::string end_table_text(const EndTable& table);

}  // namespace t3d
