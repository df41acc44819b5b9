// A process beside a rank, which carries out one task of a checkpoint (writer_task.hpp): this
// program, started again. It blocks the signals that stop a run, may use all cores that the job has
// on the node, yields to the ranks, and does not outlive its rank. Internal to `io`.
#pragma once
#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>

#include "io/writer/writer_task.hpp"

namespace t3d {

class WriterProcess {
 public:
  /// Starts it. `what`: a word for those who look at the processes. `snapshot`: an open file for a
  /// FileTask, or -1. Killed after so many seconds (0 =
  /// never), as long as it is looked at from time to time. `cores`: those that it may compute on
  /// (host_limits.hpp), "" = those of this process. Error(unavailable) where it cannot be started.
  /// The calling thread must outlive it.
  WriterProcess(const char* what, const std::string& task, int snapshot, double limit_seconds,
                const std::string& cores = {});
  /// Killed, if it has not ended.
  ~WriterProcess();
  WriterProcess(const WriterProcess&) = delete;
  WriterProcess& operator=(const WriterProcess&) = delete;

  /// What came of the task, once it has ended; never waits. A process that ended without a word is
  /// an Error(io) in it, and so is one that was ended, whatever it had said.
  [[nodiscard]] const std::optional<TaskResult>& look();

 private:
  void read_what_is_there();
  void count_time();

  pid_t process_ = -1;
  int pipe_ = -1;
  double limit_seconds_, seconds_ = 0;  // it may take, and has taken
  std::chrono::steady_clock::time_point looked_;
  std::string text_;
  std::optional<TaskResult> result_;
};

}  // namespace t3d
