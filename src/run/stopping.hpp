// Why and when a training stops before its end: signals, files in the run folder, time limits. Each
// rank utters wishes with its step (core/run_event.hpp); rank 0 also those of the run's clock and
// folder. What follows is decided from the wishes of all.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "core/run_event.hpp"
#include "sched/run_watch.hpp"

namespace t3d {

class Stopping {
 public:
  /// `speaks`: rank 0, which looks at clock and folder and answers a signal on the screen.
  Stopping(const Config& config, bool speaks);
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;
  ~Stopping();

  /// Bits of RunFlag that this rank wishes for.
  [[nodiscard]] unsigned wishes();
  /// The same before the first step, when only a stop means anything.
  [[nodiscard]] unsigned stop_wishes();
  /// `steps`: of the whole run.
  void step_done(const StepReport& step, index_t steps);
  /// No wish was heard for so long, as an evaluation was under way.
  void deaf_for(double seconds);
  /// A checkpoint is under way beside the steps: a stop waits for it.
  void save_begun();
  /// `seconds`: what the work took; 0 where there is no checkpoint.
  void save_done(double seconds);
  /// New warnings, for the log.
  [[nodiscard]] std::vector<std::string> take_warnings();

  /// One sentence on a stop that these bits asked for.
  [[nodiscard]] static std::string reason(unsigned stop);
  /// Somebody who has the means should start the job again after it.
  [[nodiscard]] static bool goes_on(unsigned stop);

 private:
  void look_at_grace();
  void look_at_signal();
  void answer(int signal) const;

  std::unique_ptr<RunWatch> watch_;  // rank 0's
  Pace pace_;
  std::atomic<double> stop_seconds_{0};
  const double start_;     // on PhaseClock's clock
  double first_step_ = 0;  // began then
  bool grace_told_ = false, signal_told_ = false;
  std::vector<std::string> warnings_;
};

}  // namespace t3d
