// What a process has to know to find out whether a run's folders are still its own: also one that
// does not hold the lock itself (io/writer).
#pragma once
#include <string>
#include <vector>

namespace t3d {

struct Lease {
  std::vector<std::string> files;  // the locks
  std::string token;               // of their owner; tells its unfinished files from others'
  /// Looks now. Error(unavailable) when a lock is somebody else's, or gone: nothing may be
  /// published or removed. Error(io) when that cannot be found out. A file that is gone is waited
  /// for, a few seconds: its owner takes it again (RunLock).
  void check() const;
  /// Of the lock of one folder.
  void check(const std::string& folder) const;
};

}  // namespace t3d
