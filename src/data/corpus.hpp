// Corpus: text files one after another, read in pieces that end where a tokenizer may be cut.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"
#include "io/posix_file.hpp"

namespace t3d {

class Corpus {
 public:
  explicit Corpus(const std::vector<std::string>& paths);
  [[nodiscard]] index_t bytes() const { return ends_.empty() ? 0 : ends_.back(); }
  /// About `most` bytes from `offset`, not beyond `end`, and then up to the end of a line (or of a
  /// character, where lines are longer).
  [[nodiscard]] std::string piece(index_t offset, index_t end, index_t most) const;
  /// The first place at or behind `offset` where a line begins.
  [[nodiscard]] index_t line_start(index_t offset) const;

 private:
  [[nodiscard]] std::string read(index_t offset, index_t bytes) const;
  std::vector<std::unique_ptr<FileReader>> files_;
  std::vector<index_t> ends_;
};

/// Bytes of `text` up to behind its last newline; without one, up to its last whole UTF-8
/// character.
[[nodiscard]] std::size_t clean_cut(std::string_view text);

}  // namespace t3d
