// DIR/log.csv: a line for each step under one line of names. Internal to `io`.
//
// A number that a later step has for the first time (a validation, a phase) gets a column at the
// right; the lines before have nothing there.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "record/log/append_file.hpp"
#include "record/log/fill_up.hpp"
#include "record/log/step_record.hpp"

namespace t3d {

/// Bytes of the names and of the lines of steps up to `last_step`, without a line cut short by a
/// kill; all bytes of what is no log of steps. Error(io).
[[nodiscard]] index_t csv_bytes_until(const std::string& path, index_t last_step);

/// The steps that have a line in a log of steps; of a long one the first, and those in the last
/// `most_bytes`. Error(io).
[[nodiscard]] StepsThere csv_steps(const std::string& path,
                                   index_t most_bytes = StepsThere::kMostBytes);

class CsvLog {
 public:
  /// Error(io) when it cannot be opened, or was not written by this class.
  explicit CsvLog(std::string path);
  [[nodiscard]] const std::string& path() const { return path_; }
  /// As AppendFile's.
  [[nodiscard]] index_t lost() const { return lost_; }
  void forget_lost() { lost_ = 0; }
  std::string put(const StepRecord& record);

 private:
  void read_columns();
  void open();
  void add_columns(const std::vector<std::string>& names);

  std::string path_;
  std::vector<std::string> columns_;  // without step, steps
  std::unique_ptr<AppendFile> file_;  // nothing while it could not be opened again
  index_t lost_ = 0;
};

}  // namespace t3d
