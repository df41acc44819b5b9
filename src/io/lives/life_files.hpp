// The records of lives in a run folder: lives.jsonl, a line for each that has ended, and life.json,
// the one that has not. Only the owner of the run's lock writes them. Both are replaced whole, so
// that a kill or a full disk leaves the old text or the new one; what else may stand in lives.jsonl
// (the half of a line, a line that is no record) is passed over. Error(io) when a file cannot be
// read or written.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "io/lives/life_record.hpp"

namespace t3d {

/// The life that has not ended, or was killed; nothing when there is none. One that lives.jsonl has
/// already is none: a write that hung came to its end late.
[[nodiscard]] std::optional<LifeRecord> read_open_life(const std::string& dir);
void write_open_life(const std::string& dir, const LifeRecord& life);
/// A life that is over and whose record is open: as exit.json, log.jsonl and the checkpoints tell.
[[nodiscard]] LifeRecord closed_as_found(const LifeRecord& life, const std::string& dir,
                                         const std::string& checkpoint_dir);

/// At a start, before exit.json and log.jsonl change: a record that a killed life left open gets
/// its line in lives.jsonl. Returns the last line there.
std::optional<LifeRecord> close_open_life(const std::string& dir,
                                          const std::string& checkpoint_dir);
/// Adds the line of a life that has ended, and takes life.json away.
void add_ended_life(const std::string& dir, const LifeRecord& life);
/// The run goes on from step `from`: what the lives before have lost is known now.
void add_lost_steps(const std::string& dir, index_t from, bool chosen);
/// Nothing is known of the life that has not ended. Never throws.
void forget_open_life(const std::string& dir) noexcept;

/// The last lives in lives.jsonl, the oldest first, without reading the whole file.
[[nodiscard]] std::vector<LifeRecord> last_lives(const std::string& dir, index_t count);

/// The last lives in a row that have brought no newer checkpoint.
struct FruitlessLives {
  index_t all = 0, cut_short = 0;  // was_cut_short(): of all
  /// That is enough: three lives, of which one preemption before the first step is forgiven, unless
  /// all were cut short.
  [[nodiscard]] bool are_too_many() const {
    constexpr index_t kMost = 3;
    return cut_short >= kMost || all - (cut_short > 0 ? 1 : 0) >= kMost;
  }
};
/// `most` are looked at. Where nothing can be read there are none. Never throws.
[[nodiscard]] FruitlessLives lives_without_progress(const std::string& dir, index_t most) noexcept;

/// Where the records cannot be written nobody counts lives. Slurm does: how often it has started
/// `job` again, this being the `restart`-th time, without a life that the folder knows of. 0 where
/// this one's record is open there. Never throws.
[[nodiscard]] index_t unknown_lives(const std::string& dir, const std::string& job,
                                    index_t restart) noexcept;

}  // namespace t3d
