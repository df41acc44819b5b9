// A long log, line by line.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "io/posix_file.hpp"

namespace t3d {

/// The whole lines of a file, one after the other; a piece of the file is in memory at a time.
class LogLines {
 public:
  /// From byte `from` on. Error(io) when the file cannot be read, also later.
  explicit LogLines(const std::string& path, index_t from = 0) : file_(path), offset_(from) {}

  /// Without its newline, until the next call; nothing at the end.
  [[nodiscard]] std::optional<std::string_view> next();
  /// After the last line: the file ends in the middle of one.
  [[nodiscard]] bool has_rest() const { return at_ < text_.size(); }

 private:
  bool read_more();

  FileReader file_;
  std::string text_;
  std::size_t at_ = 0;
  index_t offset_;
};

}  // namespace t3d
