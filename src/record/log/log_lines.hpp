// A long log, line by line.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "io/posix_file.hpp"

namespace t3d {

/// The whole lines of a file, one after the other; a piece of the file is in memory at a time. A
/// line that is longer than any record (zeros after a crash) is given as an empty one.
class LogLines {
 public:
  /// From byte `from` on. Error(io) when the file cannot be read, also later.
  explicit LogLines(const std::string& path, index_t from = 0) : file_(path), offset_(from) {}

  /// Without its newline, until the next call; nothing at the end.
  [[nodiscard]] std::optional<std::string_view> next();
  /// Where the next line begins.
  [[nodiscard]] index_t offset() const { return offset_ - (std::ssize(text_) - at()); }
  /// After the last line: the file ends in the middle of one.
  [[nodiscard]] bool has_rest() const { return too_long_ || at_ < text_.size(); }

 private:
  bool read_more();
  [[nodiscard]] index_t at() const { return static_cast<index_t>(at_); }

  FileReader file_;
  std::string text_;
  std::size_t at_ = 0;
  index_t offset_;         // of the first byte that was not read
  bool too_long_ = false;  // the beginning of this line is not in memory any more
};

}  // namespace t3d
