// A life of a run: one start of its ranks, from which checkpoint, how it ended and what was lost.
// One line of lives.jsonl (docs/03-running.md has the table of its fields); life.json holds the
// same of the life that has not ended.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "core/types.hpp"
#include "io/lives/exit_record.hpp"

namespace t3d {

/// What a life that was killed has for a reason.
inline constexpr const char* kNoWord = "ended without a word";

struct LifeRecord {
  index_t life = 1;                // 1, 2, ...
  std::optional<std::string> job;  // Slurm's
  index_t restart = 0;             // how often Slurm had restarted the job
  index_t nodes = 1, ranks = 1;
  double started = 0;  // seconds since 1970
  std::string why;     // why it started
  /// Known once the state is loaded, or made.
  std::optional<index_t> from_step, lineage;
  std::optional<std::string> checkpoint;     // path; none: from nothing
  std::optional<double> first_step_seconds;  // from the start of the process to its first step done
  std::optional<double> ended;               // seconds since 1970
  std::optional<int> code;
  std::optional<std::string> reason;
  std::optional<index_t> step;        // steps done at the end
  std::optional<index_t> saved_step;  // of the newest checkpoint that was read or written
  std::optional<index_t> lost_steps;  // known once a later life has gone on
};

/// One line of JSON, without the newline.
[[nodiscard]] std::string format_life(const LifeRecord& life);
/// Nothing where the line is no record of a life; a field of another kind than it should be is as
/// if it were not there.
[[nodiscard]] std::optional<LifeRecord> parse_life(std::string_view line);

/// What can be found out of a life that left its record open.
struct LifeTraces {
  std::optional<ExitRecord> exit;      // exit.json, which the start of the life had removed
  std::optional<double> exit_time;     // when that was written
  std::optional<index_t> logged_step;  // the last in log.jsonl
  std::optional<index_t> saved_step;   // of the newest checkpoint of its lineage
};
[[nodiscard]] LifeRecord closed_life(LifeRecord life, const LifeTraces& traces);

/// It has brought a newer checkpoint than the one that it went on from.
[[nodiscard]] bool has_progressed(const LifeRecord& life);
/// It was stopped from outside before its first step: that says nothing of the run.
[[nodiscard]] bool was_cut_short(const LifeRecord& life);

/// Steps of an ended life that have to be done again, or are given up, when the next one goes on
/// from step `next_from`: those after that checkpoint. Where that is not of this life (a life that
/// came to no checkpoint, beside others that did), or where somebody chose where to go on, those
/// that no checkpoint holds. Nothing where it is not known how far the life came.
[[nodiscard]] std::optional<index_t> lost_steps(const LifeRecord& life, index_t next_from,
                                                bool chosen);

}  // namespace t3d
