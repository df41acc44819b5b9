// A file that grows by whole records; each is handed to the system at once. Internal to `io`.
#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "core/types.hpp"
#include "io/posix_file.hpp"

namespace t3d {

class AppendFile {
 public:
  /// `mend`: written before the next record where the part of one could not be taken away (a
  /// newline ends the part of a line). "" = none is written until it can be. Error(io).
  explicit AppendFile(std::string path, std::string mend = "");
  [[nodiscard]] const std::string& path() const { return path_; }
  /// Records that could not be written, since the last one that could.
  [[nodiscard]] index_t lost() const { return lost_; }
  void forget_lost() { lost_ = 0; }
  /// Up to the end of the last whole record.
  [[nodiscard]] index_t bytes() const { return whole_; }

  /// "" or the reason of the failure. Then nothing of the record is in the file.
  std::string put(std::string_view record);
  /// Waits until the disk has what was written.
  void sync() const;

 private:
  std::string path_, mend_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  index_t whole_;  // bytes up to the end of the last whole record
  index_t lost_ = 0;
  bool cut_ = false;  // there is a part of a record behind them
};

/// A file of lines.
class LineFile : public AppendFile {
 public:
  explicit LineFile(std::string path) : AppendFile(std::move(path), "\n") {}
  std::string put(const std::string& line) { return AppendFile::put(line + "\n"); }
};

}  // namespace t3d
