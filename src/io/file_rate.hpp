// How fast one process writes and reads files of its own in a folder. The files never get a lasting
// name: they go whatever happens (io/partial_file.hpp).
#pragma once
#include <string>

#include "core/types.hpp"
#include "io/partial_file.hpp"

namespace t3d {

/// One file of this process, from its first byte to its removal.
class FileTrial {
 public:
  /// `folder`/`name`: of nobody else. Creates nothing yet. Error(io).
  FileTrial(const std::string& folder, const std::string& name);
  /// Seconds until `bytes` more bytes are on the disk (fsync). Error(io).
  double write(index_t bytes);
  /// Seconds to read all of it, after the system was asked to forget it.
  double read();

 private:
  PartialFile file_;
  index_t size_ = 0;
};

/// Seconds to make, sync and rename a small file. Nothing of it stays.
[[nodiscard]] double small_file_seconds(const std::string& folder, const std::string& name);

}  // namespace t3d
