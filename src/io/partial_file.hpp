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

/// A folder in the making: while one lives, a signal that ends the program removes the folder too.
class PartialFolder {
 public:
  explicit PartialFolder(std::string path);
  ~PartialFolder();
  PartialFolder(const PartialFolder&) = delete;
  PartialFolder& operator=(const PartialFolder&) = delete;

 private:
  std::string path_;
};

/// Removes every file and folder in the making. For the thread that is about to end the process:
/// from here on no file is begun or published, threads that try wait for ever.
void remove_partial_files();

}  // namespace t3d
