// DIR/tensorboard: what TensorBoard reads, a file for each life that has done a step. Internal to
// `io`.
#pragma once
#include <string>

#include "record/log/append_file.hpp"
#include "record/log/fill_up.hpp"
#include "record/log/step_record.hpp"

namespace t3d {

/// Cuts the events of a folder back to `last_step`, in place; files without any are removed.
/// Durable; Error(io).
void cut_events(const std::string& folder, index_t last_step);

/// Writes those of `source` into `folder`, which has none. Durable; Error(io).
void copy_events(const std::string& source, const std::string& folder, index_t last_step);

/// The steps in the event files of a folder, as csv_steps. Error(io).
[[nodiscard]] StepsThere logged_events(const std::string& folder,
                                       index_t most_bytes = StepsThere::kMostBytes);

/// Removes the event files of a folder, and the folder where it holds nothing else. Error(io).
void drop_events(const std::string& folder);

class EventLog {
 public:
  /// The steps of this life follow `start_step`. Error(io).
  EventLog(const std::string& folder, index_t start_step);
  [[nodiscard]] const std::string& path() const { return file_.path(); }
  [[nodiscard]] index_t lost() const { return file_.lost(); }
  void forget_lost() { file_.forget_lost(); }
  /// As AppendFile's.
  std::string put(const StepRecord& record);

 private:
  AppendFile file_;
};

}  // namespace t3d
