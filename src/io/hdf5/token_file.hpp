// Token file: a tokenized text as one HDF5 file that says by itself how it came to be.
//
//   tokens            1-D, uint16 (vocabulary <= 65536) or uint32, in chunks of 1 MiB
//   block_crc32c      CRC32C of every such MiB, started from its number
//   tokenizer_model   the bytes of the SentencePiece model (absent for "bytes")
//   attributes        format, version, vocab, tokenizer, source, text_bytes; crc32c of all these,
//                     of the model and of block_crc32c
//
// The reader verifies each block the first time it touches it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct TokenFileInfo {
  index_t vocab = 256;
  std::string tokenizer = "bytes";  // "bytes" | "sentencepiece" | "unknown"
  std::string model;                // serialized SentencePiece model, or empty
  std::string source;               // where the text came from, for people
  index_t text_bytes = 0;           // of the original text; 0 = unknown
  index_t tokens = 0;               // set by the reader
};

class TokenFileWriter {
 public:
  /// Writes to `path`.partial-TOKEN; finish() gives it its name. Throws Error(io).
  TokenFileWriter(std::string path, TokenFileInfo info);
  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  /// Error(config) when an id is outside the vocabulary.
  void append(const std::int32_t* ids, index_t count);
  /// text_bytes counts up with the text.
  void add_text_bytes(index_t bytes);
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// All of a file but its tokens: what one rank reads and hands to others.
struct TokenFileHeader {
  TokenFileInfo info;
  std::vector<std::uint32_t> block_crcs;
  /// CRC of all this: equal files have equal ones.
  std::uint32_t checksum = 0;
};

class TokenFileReader {
 public:
  /// Error(no_input) when it is not there, Error(io) when it is not a whole token file.
  explicit TokenFileReader(const std::string& path);
  /// Does not read the header again: it is `header`. Error(io) when the file has not as many
  /// tokens.
  TokenFileReader(const std::string& path, TokenFileHeader header);
  ~TokenFileReader();
  TokenFileReader(const TokenFileReader&) = delete;
  TokenFileReader& operator=(const TokenFileReader&) = delete;

  [[nodiscard]] const TokenFileHeader& header() const;
  [[nodiscard]] const TokenFileInfo& info() const { return header().info; }
  /// Error(io) when a block that it touches is damaged.
  void read(index_t first, index_t count, std::int32_t* out);
  /// Reads and checks every block.
  void verify();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// True when `path` starts with HDF5's signature.
[[nodiscard]] bool is_hdf5_file(const std::string& path);

}  // namespace t3d
