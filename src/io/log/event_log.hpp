// DIR/tensorboard: what TensorBoard reads, a file for each life that has done a step. Internal to
// `io`.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "io/log/append_file.hpp"
#include "io/log/step_record.hpp"

namespace t3d {

/// Leaves in `folder` the events of `source`, maybe the same folder, up to `last_step`; files
/// without any are removed. Durable; Error(io).
void keep_events(const std::string& source, const std::string& folder, index_t last_step);

/// The steps in the event files of a folder. Error(io).
[[nodiscard]] std::vector<index_t> logged_events(const std::string& folder);

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
