// RunWatch: what comes to a run from outside but signals, looked for by one rank in a thread of its
// own, off the steps: files that ask for something, the run's own time limit, and Slurm's.
//
//   DIR/stop_now         stop after this step, with a checkpoint; no further life
//   DIR/checkpoint_now   a checkpoint after this step
//   DIR/report_now       the tables of the end, now
//
// And for those who look at the queue (squeue -o "%i %k"), how far the run has come: the job's
// comment is "step 1200/5000, loss 3.21, ends in 2 h", unless somebody has given it one, or may
// not.
//
// A file is removed when it has been seen; one that was there before the process began is removed
// and does nothing.
#pragma once
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/types.hpp"
#include "sched/requeue.hpp"
#include "sched/slurm_job.hpp"
#include "sched/time_limit.hpp"

namespace t3d {

class RunWatch {
 public:
  struct Options {
    std::string dir;        // of the run
    double hours = 0;       // of this life; 0 = no limit of its own
    std::string slurm_job;  // "" = none
    /// What `scontrol` prints for these words; nothing where it cannot be had. Tests give their
    /// own.
    std::function<std::optional<std::string>(const std::vector<std::string>&)> scontrol;
    /// End of the job as it looked when it began (SLURM_JOB_END_TIME), in seconds since 1970; it
    /// counts until Slurm has answered. 0 = not known.
    double slurm_end = 0;
  };
  /// Asks Slurm once (10 s at most) and starts the thread.
  explicit RunWatch(Options options);
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;
  ~RunWatch();

  /// Bits of RunFlag (core/run_event.hpp) that are wished for now, of those in `mask`. A file's
  /// wish is uttered once.
  [[nodiscard]] unsigned take_wishes(const Pace& pace, unsigned mask = ~0U);
  /// How far the run is; for the job's comment, which changes once a minute at most.
  struct Progress {
    index_t step = 0, steps = 0;
    double loss = 0;
  };
  void set_progress(const Progress& progress);
  /// To the end of this life's time; none = no limit.
  [[nodiscard]] std::optional<double> left_seconds() const;
  /// As Slurm last said; nothing outside Slurm.
  [[nodiscard]] std::optional<SlurmJob> job() const;
  /// Between a preemption's signal and its kill; none = not known.
  [[nodiscard]] std::optional<double> grace_seconds() const { return grace_; }

 private:
  void watch() noexcept;
  [[nodiscard]] double stood_still(double now) const;
  void look_for_files(bool begins);
  void ask_slurm();
  void comment();

  const Options options_;
  const double start_;
  const double begun_;          // the process; seconds since 1970
  std::array<bool, 3> seen_{};  // files whose wish is known and that cannot be removed
  std::optional<double> grace_;
  int refused_ = 0;           // comments, one after another; the thread's, as the next one
  double commented_ = -1e9;   // the last time, on PhaseClock's clock
  mutable std::mutex mutex_;  // of the seven below
  std::condition_variable wake_;
  bool ending_ = false;
  std::optional<SlurmJob> job_;
  std::optional<Progress> progress_;
  index_t first_step_ = -1;  // that was told, in this life; and when, on PhaseClock's clock
  double first_time_ = 0;
  std::optional<double> slurm_end_;  // on PhaseClock's clock
  double sleeps_since_ = 0;          // the thread; on that clock; 0 = it is awake
  std::atomic<unsigned> file_wishes_{0};
  std::thread thread_;
};

}  // namespace t3d
