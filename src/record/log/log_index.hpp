// Which steps a log.jsonl lacks, without reading a long one at every start: beside it stands
// log.index, a line for every 32 MiB of the log with what is known up to there. A line counts while
// the log is the same up to its end (the bytes before that end have the noted CRC); what is behind
// the last line that counts is read. A log that is shorter has no index.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"
#include "io/lives/missing_steps.hpp"
#include "record/log/append_file.hpp"

namespace t3d {

class LogIndex {
 public:
  /// Reads log.index beside `log`, as far as it fits; where it does not, or cannot be read, nothing
  /// is known yet. Error(io) when the log cannot be read.
  explicit LogIndex(std::string log);

  /// Reads the log on from what is known, for `seconds` at most.
  void read_on(double seconds);
  /// A record was appended, from byte `begin` to byte `end`.
  void add(index_t step, index_t begin, index_t end);
  /// Error(io); what cannot be kept is read again at the next start.
  void save();

  [[nodiscard]] const MissingSteps& missing() const { return missing_; }
  /// Bytes of the log that were looked at; all of it where that is its size.
  [[nodiscard]] index_t known_bytes() const { return known_bytes_; }

 private:
  struct Mark {
    index_t end = 0;
    std::uint32_t crc = 0;
    index_t last = 0, holes = 0, count = 0;
    std::vector<StepRange> ranges;  // since the mark before
  };

  void load();
  void take(index_t step, index_t end);
  [[nodiscard]] index_t marked_bytes() const { return marks_.empty() ? 0 : marks_.back().end; }

  std::string log_, path_;
  std::vector<Mark> marks_;
  std::size_t marked_ranges_ = 0, saved_ = 0;
  MissingSteps missing_;
  index_t known_bytes_ = 0;
};

/// log.jsonl, whose index follows it.
class StepLines {
 public:
  /// `index`: of the log at `path`. Error(io).
  StepLines(const std::string& path, LogIndex index) : file_(path), index_(std::move(index)) {}
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] index_t lost() const { return file_.lost(); }
  void forget_lost() { file_.forget_lost(); }
  /// As AppendFile's.
  std::string put(const std::string& line);
  void sync() const { file_.sync(); }

 private:
  LineFile file_;
  LogIndex index_;
};

/// Holes of a log.jsonl, for readers; where more than `most_bytes` of it are not known, those at
/// the end are looked at. A file that is not there has none. Error(io).
[[nodiscard]] MissingSteps missing_steps(const std::string& path,
                                         index_t most_bytes = index_t{64} << 20);

}  // namespace t3d
