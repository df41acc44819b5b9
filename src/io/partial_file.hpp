// A file in the making. It has another name until it is whole; if that never happens it is removed,
// also when a signal ends the program (remove_partial_files).
#pragma once
#include <string>

namespace t3d {

class PartialFile {
 public:
  /// Makes the folder of `path` and removes what an earlier, killed program left at name().
  /// Creating the file is the caller's. Error(io).
  explicit PartialFile(std::string path);
  /// Removes the file unless it was published.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The name for now: path + ".partial".
  [[nodiscard]] const std::string& name() const { return name_; }
  /// fsync and rename to path().
  void publish();

 private:
  std::string path_, name_;
  bool published_ = false;
};

/// Removes every file in the making. For the thread that is about to end the process: from here on
/// no file is begun or published, threads that try wait for ever.
void remove_partial_files();

}  // namespace t3d
