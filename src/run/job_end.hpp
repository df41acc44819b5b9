// The end of a training job: what exit.json and the record of its life say, whether somebody should
// start the job again, and what does so as the program's last act. Nothing here talks to MPI or
// waits for another rank: a rank may end alone.
#pragma once
#include <functional>
#include <string>

#include "config/config.hpp"
#include "core/error.hpp"
#include "core/run_event.hpp"
#include "io/lock/run_lock.hpp"
#include "run/life.hpp"

namespace t3d {

class JobEnd {
 public:
  /// How far the job has come. A checkpoint of step -1: none.
  struct Progress {
    index_t began_at = -1;    // step of the checkpoint that this life goes on from
    index_t steps_begun = 0;  // by this process
    index_t done = 0;         // steps of the whole run
    index_t last_saved = -1;  // of the newest checkpoint, published by this life or gone on from
  };

  /// `warn`: hears of a record that could not be written.
  JobEnd(const Config& config, int rank, Life& life, Warn warn);

  /// The run folder is there, and this life's. `lock`: rank 0's.
  void set_folder(const RunLock* lock, const Epoch& epoch);
  /// The job has come to a stop before its end, asked for by `flags` (bits of RunFlag).
  void stopped(unsigned flags);
  /// At run.pause_at: a job of another size is to go on, which this program does not start.
  void paused();
  /// A read that has failed for long might work in a later life.
  void fault_may_pass();
  [[nodiscard]] bool may_pass() const { return may_pass_; }
  /// Plans the last act, and writes exit.json and the record of the life, once the run folder is
  /// this job's. Of several that end together, one does so; a rank that ends alone always does.
  void record(ExitCode code, const std::string& reason, const Progress& progress);
  /// Puts the job back into Slurm's queue, where the run is to go on and this is possible. The last
  /// act of the program: Slurm ends the job's processes.
  [[nodiscard]] const std::function<void()>& last_act() const { return last_act_; }

 private:
  void write(const ExitRecord& record) const;
  void plan_last_act(const Progress& progress);
  [[nodiscard]] bool folder_is_anothers() const;

  const Config& config_;
  const int rank_;
  Life& life_;
  const Warn warn_;
  const RunLock* lock_ = nullptr;
  Epoch epoch_;
  bool has_folder_ = false;
  unsigned stop_flags_ = kNoFlag;
  bool goes_on_ = false;  // the job is to be started again
  bool paused_ = false;
  bool may_pass_ = false;
  std::function<void()> last_act_;
};

}  // namespace t3d
