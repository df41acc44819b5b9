// Lines of a stream, one at a time, in bounded memory.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "data/text/input_stream.hpp"

namespace t3d {

class LineReader {
 public:
  /// `offset`: of the stream's first byte in the file. `most`: bytes of a line.
  LineReader(std::unique_ptr<InputStream> stream, index_t offset, index_t most);

  struct Line {
    std::string_view text;  // without its end ("\n" or "\r\n") and, at the begin of a file, its
                            // byte-order mark; until the next call
    index_t offset = 0;     // of its first byte
    bool too_long = false;  // then `text` is its beginning, and the rest has been passed over
  };
  /// Nothing behind the last line.
  [[nodiscard]] std::optional<Line> next();

 private:
  [[nodiscard]] bool fill();

  std::unique_ptr<InputStream> stream_;
  index_t offset_ = 0;  // of buffer_[at_]
  index_t most_ = 0;
  std::string buffer_;
  std::string beginning_;  // of a line that is too long
  std::size_t at_ = 0;
  bool ended_ = false;
};

/// The number, from 1 on, of the line that begins at `offset` of a file: reads all before it.
[[nodiscard]] index_t line_number(const std::string& path, index_t offset);

}  // namespace t3d
