// What fuzz targets share. A parser answers an input with a value or with an Error that is not
// "internal"; whatever else it does is a finding.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace t3d::test {

inline std::string_view as_text(const std::uint8_t* data, std::size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

/// Calls `parse`; an Error about the input is an answer.
template <class Parse>
void expect_answer(const Parse& parse) {
  try {
    parse();
  } catch (const Error& error) {
    if (error.code() == ExitCode::internal) throw;
  }
}

/// Bytes under the name of a file, without a disk.
class MemoryFile {
 public:
  MemoryFile()
      : file_(::memfd_create("input", 0)), path_("/proc/self/fd/" + std::to_string(file_)) {
    if (file_ < 0) std::abort();
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  void write(std::string_view text) const {
    if (::ftruncate(file_, 0) != 0 ||
        ::pwrite(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()))
      std::abort();
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int file_ = -1;
  std::string path_;
};

}  // namespace t3d::test
