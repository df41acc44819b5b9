// Where tokens are written, in order: a token file of ours, or files of other programs.
#pragma once
#include <memory>
#include <string>

#include "core/types.hpp"
#include "data/tokenize.hpp"
#include "io/hdf5/token_file.hpp"

namespace t3d {

class TokenSink {
 public:
  virtual ~TokenSink() = default;
  /// `counts`: in the loss; formats of others do not keep it. Error(config) outside the vocabulary.
  virtual void append(const std::int32_t* ids, index_t count, bool counts) = 0;
  virtual void end_document() = 0;
  virtual void add_text_bytes(index_t bytes) = 0;
  /// Gives the files their names.
  virtual void finish() = 0;
  /// The file, or the first of several.
  [[nodiscard]] virtual const std::string& path() const = 0;
};

/// `stem`: the path without an ending.
[[nodiscard]] std::unique_ptr<TokenSink> make_token_sink(TokenOutput output,
                                                         const std::string& stem,
                                                         const TokenFileInfo& info);

}  // namespace t3d
