// A study run on this machine, one run at a time: the first repeat of every point, then the second,
// and so on, so that whatever slows the machine down for a while hits all points alike.
#pragma once
#include <string>

#include "io/lock/run_lock.hpp"
#include "tools/scaling/study_plan.hpp"

namespace t3d {

struct StudyEnd {
  bool stopped = false;  // asked to by a signal
  index_t failed = 0;    // points that could not be run, and are missing
};

/// Runs what `dir` does not have yet. `launcher`: words with {ranks} for their number. A run that
/// has not ended is begun anew, and what it left stays as repeat-N.unfinished-M. The checkpoint at
/// the end of each run is removed: a study is of times.
/// `lock`: of `dir`; Error(unavailable) where it is lost. A run that somebody else is doing (a task
/// of the study's array job) is left alone, and failed.
[[nodiscard]] StudyEnd run_study(const std::string& dir, const StudyPlan& plan,
                                 const std::string& launcher, const RunLock& lock);

/// "mpirun -n {ranks}", 4 -> mpirun, -n, 4.
[[nodiscard]] std::vector<std::string> launcher_words(const std::string& launcher, index_t ranks);

}  // namespace t3d
