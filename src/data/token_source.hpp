// TokenSource: a corpus seen as one long array of token ids, whatever files it lies in.
//
//   hdf5   token files of ours (io/hdf5/token_file.hpp)
//   llmc   llm.c shards: 256 int32 header (magic 20240520 v1 uint16, 20240801 v7 uint32)
//   megatron   NAME.bin with NAME.idx (data/megatron_index.hpp); either may be named
//   u16, u32   headerless little-endian ids (nanoGPT)
//   bytes  any file: one token per byte, vocabulary 256
//   auto   by signature and ending: HDF5 signature, llm.c magic, Megatron's index, else *.txt as
//   bytes
//
// A file whose signature says another format than the one asked for is refused.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/choices.hpp"
#include "core/special_ids.hpp"
#include "core/types.hpp"

namespace t3d {

struct TokenCard;

/// What ranks compare to know that they read the same text.
struct CorpusFile {
  std::string path;
  index_t bytes = 0, tokens = 0;
  std::uint32_t checksum = 0;  // of token files and Megatron's indices; 0 in other formats
  friend bool operator==(const CorpusFile&, const CorpusFile&) = default;
};

class TokenSource {
 public:
  virtual ~TokenSource() = default;
  [[nodiscard]] virtual index_t size() const = 0;
  /// Ids are in [0, vocab()); 0 when the format does not say (llmc, u16, u32).
  [[nodiscard]] virtual index_t vocab() const = 0;
  /// Bytes of text per token, for bits per byte; 0 when unknown.
  [[nodiscard]] virtual double bytes_per_token() const = 0;
  /// Throws Error(io) on damage, Error(config) on an id outside the vocabulary.
  virtual void read(index_t first, index_t count, std::int32_t* out) = 0;
  /// Some tokens do not count as targets (prompts).
  [[nodiscard]] virtual bool partial_loss() const { return false; }
  /// 1 where a token counts as a target, else 0.
  virtual void read_counts(index_t first, index_t count, std::uint8_t* out) {
    (void)first;
    std::fill_n(out, count, std::uint8_t{1});
  }
  /// "train.h5: 1234567 tokens, vocabulary 32000, sentencepiece"
  [[nodiscard]] virtual std::string describe() const = 0;
  /// The tokenizer, serialized, or empty.
  [[nodiscard]] virtual std::string tokenizer_model() const { return {}; }
  /// Hash of the tokenizer that made the ids (tokenizer/tokenizer.hpp); 0 when the format does
  /// not say (llmc, u16, u32). All files of a source have the same one.
  [[nodiscard]] virtual std::uint64_t tokenizer_hash() const { return 0; }
  /// Where the format says them; else none.
  [[nodiscard]] virtual SpecialIds special_ids() const { return {}; }
  /// 0 where the format does not say.
  [[nodiscard]] virtual index_t documents() const { return 0; }
  /// The files behind the source, in order; empty for what is in memory.
  [[nodiscard]] virtual std::vector<CorpusFile> files() const { return {}; }
};

/// Opens all files that match `patterns` (globs, each expanded in sorted order) as one source.
/// `vocab` > 0: every id read must be below it. Error(no_input) when a pattern matches nothing.
[[nodiscard]] std::shared_ptr<TokenSource> make_token_source(
    const std::vector<std::string>& patterns, TokenFormat format = TokenFormat::automatic,
    index_t vocab = 0);

/// The same of files whose cards have been read (data/token_card.hpp).
[[nodiscard]] std::shared_ptr<TokenSource> make_token_source(std::vector<TokenCard> cards,
                                                             index_t vocab = 0);

/// Several sources one after another. Error(config) when their tokenizers differ.
[[nodiscard]] std::shared_ptr<TokenSource> make_joined_source(
    std::vector<std::shared_ptr<TokenSource>> sources, index_t vocab = 0);

/// Tokens that are in memory already (tests, generated text).
[[nodiscard]] std::shared_ptr<TokenSource> make_memory_source(std::vector<std::int32_t> ids,
                                                              index_t vocab);

}  // namespace t3d
