// Of two `tokenize` commands with one output prefix, one works and the other is told.
#pragma once
#include <string>

namespace t3d {

/// Holds PREFIX.parts.lock by flock, which the system gives back when its process ends in whatever
/// way: a file that is left is no obstacle. Where a file system has no such locks, nothing is held.
class PrefixLock {
 public:
  /// Makes the folder of `prefix`. Error(unavailable), naming the other process, when the lock is
  /// held; Error(io); Error(config) where a file of somebody else has this name.
  explicit PrefixLock(const std::string& prefix);
  /// Removes the file, then gives the lock back.
  ~PrefixLock();
  PrefixLock(const PrefixLock&) = delete;
  PrefixLock& operator=(const PrefixLock&) = delete;

 private:
  /// False when the file that was opened has been removed meanwhile.
  [[nodiscard]] bool take(const std::string& prefix);
  /// Does the path name the open file?
  [[nodiscard]] bool is_named() const;
  void write_owner() const;

  std::string path_;
  int fd_ = -1;
};

}  // namespace t3d
