// A file or a folder in the making. It has another name until it is whole; if that never happens it
// is removed, also when a signal ends the program (remove_partial_files).
#pragma once
#include <string>

namespace t3d {

/// The name for now, and the way from it to the right one.
class PartialPath {
 public:
  PartialPath(const PartialPath&) = delete;
  PartialPath& operator=(const PartialPath&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// path + ".partial-TOKEN". Nobody else has it, so that of two programs that write one path, each
  /// publishes a whole one. A killed program leaves it behind.
  [[nodiscard]] const std::string& name() const { return name_; }

 protected:
  explicit PartialPath(std::string path);
  /// Removes it unless it was published.
  ~PartialPath();
  /// fsync and rename to path().
  void rename();

 private:
  std::string path_, name_;
  bool published_ = false;
};

/// While it lives, a file of this name is removed, too, where a signal ends the program.
class TemporaryName {
 public:
  explicit TemporaryName(std::string name);
  ~TemporaryName();
  TemporaryName(const TemporaryName&) = delete;
  TemporaryName& operator=(const TemporaryName&) = delete;

 private:
  std::string name_;
};

class PartialFile : public PartialPath {
 public:
  /// Makes the folder of `path`. Creating the file is the caller's. Error(io), also where `path` is
  /// something else than a regular file.
  explicit PartialFile(const std::string& path);
  void publish() { rename(); }
};

/// Of two programs that make one folder, one wins whole and the other is told.
class PartialFolder : public PartialPath {
 public:
  /// Makes it, under its name for now. Error(usage) when there is something at `path` already that
  /// is not an empty folder; Error(io).
  explicit PartialFolder(const std::string& path);
  /// Error(usage) when somebody else was faster.
  void publish();
};

/// Removes every file and folder in the making. For the thread that is about to end the process:
/// from here on none is begun or published, threads that try wait for ever.
void remove_partial_files();

}  // namespace t3d
