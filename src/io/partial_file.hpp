// A file in the making. It has another name until it is whole; if that never happens it is removed,
// also when a signal ends the program (remove_partial_files).
#pragma once
#include <string>

namespace t3d {

class PartialFile {
 public:
  /// Makes the folder of `path`. Creating the file is the caller's. Error(io), also where `path` is
  /// something else than a regular file.
  explicit PartialFile(const std::string& path);
  /// Removes the file unless it was published.
  ~PartialFile();
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The name for now: path + ".partial-TOKEN". Nobody else has it, so that of two programs that
  /// write one path, each publishes a whole file. A killed program leaves it behind.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// fsync and rename to path().
  void publish();

 private:
  std::string path_, name_;
  bool published_ = false;
};

/// A new folder in the making: it has its name when all in it is there, so that of two programs
/// that make one folder, one wins whole and the other is told.
class PartialFolder {
 public:
  /// Makes path + ".partial-TOKEN". Error(usage) when there is something at `path` already that is
  /// not an empty folder; Error(io).
  explicit PartialFolder(const std::string& path);
  /// Removes the folder unless it was published.
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// The name for now.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// fsync and rename to path(). Error(usage) when somebody else was faster.
  void publish();

 private:
  std::string path_, name_;
  bool published_ = false;
};

/// Removes every file and folder in the making. For the thread that is about to end the process:
/// from here on no file is begun or published, threads that try wait for ever.
void remove_partial_files();

}  // namespace t3d
