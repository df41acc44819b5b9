// The lock of a run: as long as it is held, nobody else trains in the run's folders. Rank 0 takes
// it before anything is written there. Evaluation, generation and inspection only read and need
// none. A scaling study locks its folder in the same way.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/lock/lease.hpp"

namespace t3d {

/// What to tell who meets the lock of a training that is alive.
inline constexpr const char* kTwoTrainings =
    "two jobs cannot train in one folder. Wait for it, stop it, or choose another folder with -d";

class RunLock {
 public:
  /// Takes DIR/run.lock in every folder (they exist; some may be the same). While an owner gives
  /// no sign of life it is waited for, about a minute: `waiting` gets a text twice a second and may
  /// throw. Error(unavailable) names an owner that is alive, with `advice`; Error(io): nothing can
  /// be written.
  RunLock(const std::vector<std::string>& folders, const std::string& run,
          const std::function<void(const std::string&)>& waiting,
          const std::string& advice = kTwoTrainings);
  /// Gives the locks back, unless they are somebody else's by now. A file system that hangs is
  /// waited for kLastSeconds at most: the locks stay then, as those of a process that has ended.
  ~RunLock();
  static constexpr double kLastSeconds = 5;
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  /// The run's id, once it is known, for those who meet the lock. Waits for a moment at most.
  void set_run(const std::string& id);
  /// Another process has taken the lock, perhaps given it back since; noticed within some seconds.
  /// A lock whose file is gone is taken again; it is lost where that did not succeed for half a
  /// minute, or nobody looked for so long (the process was suspended): others may have come and
  /// gone. What cannot be read is not lost.
  [[nodiscard]] bool lost() const;
  /// What has happened to the lock since the last call, for the user.
  [[nodiscard]] std::vector<std::string> take_warnings();
  /// Looks now.
  void check() const { lease_.check(); }
  /// At the lock of one of the folders.
  void check(const std::string& folder) const { lease_.check(folder); }
  [[nodiscard]] const Lease& lease() const { return lease_; }

 private:
  struct Held;
  struct State;

  Lease lease_;
  std::shared_ptr<State> state_;
};

}  // namespace t3d
