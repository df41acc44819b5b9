// Token file: a tokenized text as one HDF5 file that says by itself how it came to be.
//
//   tokens            1-D, uint16 (vocabulary <= 65536) or uint32, in chunks of 1 MiB
//   document_ends     1-D, uint64: the number of tokens up to the end of each document (absent
//                     where documents are not known); behind the last one there may be tokens of
//                     a document that goes on in another file
//   loss_bits         1-D, uint8: bit n % 8 of byte n / 8 is 1 where token n counts as a target
//                     (absent where all count)
//   *_crc32c          of each of these, CRC32C of every such MiB, started from its number; that of
//                     tokens is called block_crc32c
//   tokenizer_model   the bytes of the tokenizer's model (absent for "bytes")
//   attributes        format, version, vocab, tokenizer, source, text_bytes, documents, bos, eos,
//                     pad, unknown, and of version 3 ends ("2 0": all that end a text) and adds_bos
//                     (1, 0, or -1 where it is not said); crc32c of all these, of the model and of
//                     all *_crc32c. And unicode ("15.0"), for people: nothing checks it
//
// Version 3 is written only where there are ends or adds_bos. Version 1, which is still read, has
// neither documents nor special ids nor loss bits. The reader
// verifies each block the first time it touches it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/special_ids.hpp"
#include "core/types.hpp"

namespace t3d {

struct TokenFileInfo {
  index_t vocab = 256;
  std::string tokenizer = "bytes";  // a Tokenizer's kind (tokenizer), or "unknown"
  std::string model;                // its serialized model, or empty
  std::string source;               // where the text came from, for people
  index_t text_bytes = 0;           // of the original text; 0 = unknown
  index_t tokens = 0;               // set by the reader
  SpecialIds special{};
  index_t documents = 0;      // set by the reader; 0 = not known
  bool partial_loss = false;  // set by the reader: some tokens do not count as targets
  std::string unicode{};      // whose tables cut the texts; empty = none, or not known
};

class TokenFileWriter {
 public:
  /// Writes to `path`.partial-TOKEN; finish() gives it its name. Throws Error(io).
  TokenFileWriter(std::string path, TokenFileInfo info);
  ~TokenFileWriter();
  TokenFileWriter(const TokenFileWriter&) = delete;
  TokenFileWriter& operator=(const TokenFileWriter&) = delete;

  /// `counts`: as targets, all of them. Error(config) when an id is outside the vocabulary.
  void append(const std::int32_t* ids, index_t count, bool counts = true);
  /// The tokens since the last end are a document; without any there is none.
  void end_document();
  /// text_bytes counts up with the text.
  void add_text_bytes(index_t bytes);
  /// Other than what the constructor was given.
  void set_source(std::string source);
  [[nodiscard]] index_t tokens() const;
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// All of a file but its arrays: what one rank reads and hands to others.
struct TokenFileHeader {
  TokenFileInfo info;
  std::vector<std::uint32_t> block_crcs, document_crcs, loss_crcs;
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
  /// These throw Error(io) when a block that they touch is damaged.
  void read(index_t first, index_t count, std::int32_t* out);
  /// 1 where a token counts as a target, else 0.
  void read_counts(index_t first, index_t count, std::uint8_t* out);
  /// Of documents [first, first + count): the number of tokens up to their ends.
  [[nodiscard]] std::vector<index_t> read_document_ends(index_t first, index_t count);
  /// Reads and checks every block, and that every document has tokens.
  void verify();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// True when `path` starts with HDF5's signature.
[[nodiscard]] bool is_hdf5_file(const std::string& path);

}  // namespace t3d
