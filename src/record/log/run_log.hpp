// The files and the screen of a run, written by rank 0 only:
//
//   run.log        what people read; grows over restarts
//   log.jsonl      one object per step
//   log.csv        one line per step
//   tensorboard/   event files
//   resolved.toml  every key of the input
//
// After a restart the steps behind the checkpoint are dropped from the logs of steps, and those of
// an earlier lineage are put aside (step_log.hpp). log.csv and tensorboard, where they are switched
// on later, get the steps before from log.jsonl.
//
// Steps before that checkpoint which log.jsonl lacks are a warning.
//
// What is said and the steps go to the files in a thread of their own (io/file_service.hpp): a file
// system that pauses does not hold the steps.
//
// A file that cannot be opened is an Error(io) where a run begins. One that fails later, also at a
// start that goes on from a checkpoint, is reported, and the training goes on: a full disk must not
// cost the run. The file keeps whole lines, and that it can be written again is reported, too.
#pragma once
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "io/file_service.hpp"
#include "record/log/end_table.hpp"
#include "record/log/step_log.hpp"
#include "record/log/step_record.hpp"

namespace t3d {

struct RunLogOptions {
  std::string dir;         // created
  index_t start_step = 0;  // steps done by the checkpoint this run goes on from
  LogLineage lineage;
  index_t every_steps = 1;  // of lines; log.jsonl has every step
  bool json = true, csv = false, tensorboard = false;
  bool progress = true;        // a bar, when `screen` is a terminal
  bool quiet = false;          // nothing but warnings on the screen
  std::FILE* screen = stdout;  // stays open
};

class RunLog {
 public:
  /// Writes nothing: for all ranks but 0.
  RunLog();
  explicit RunLog(const RunLogOptions& options);
  ~RunLog();
  RunLog(RunLog&&) noexcept;
  RunLog& operator=(RunLog&&) noexcept;

  /// A line (or several) on the screen and in run.log.
  void note(const std::string& text);
  /// The same, marked, also when quiet.
  void warn(const std::string& text);
  void step(const StepRecord& record);
  /// Takes the bar away and prints the table.
  void finish(const EndTable& table);
  /// Replaces DIR/resolved.toml. Throws Error(io).
  void write_resolved(const std::string& text);
  /// Writes another file of the run after what has been handed over so far; `what` is said of it
  /// ("run/run.json"). `work` owns what it uses; what it throws is a warning. At once on ranks
  /// without files.
  void later(const std::string& what, std::function<void()> work);
  /// Waits for the files, so long at most; what is left then is dropped, with a word on the screen.
  /// What is handed over so far is on the disk before what follows.
  void sync();
  void settle(double seconds);
  /// nullptr where nothing is written.
  [[nodiscard]] FileService* files() const;

 private:
  class Impl;
  void close() noexcept;
  std::shared_ptr<Impl> impl_;
};

}  // namespace t3d
