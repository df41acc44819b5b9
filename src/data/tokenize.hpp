// Corpus of texts -> token files: `transformer3d tokenize`.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/types.hpp"
#include "data/text/json_line.hpp"

namespace t3d {

/// What is written (data/token_sink.hpp).
enum class TokenOutput { hdf5, megatron, llmc };

struct TokenizeOptions {
  std::string kind = "bytes";   // "bytes" | "bpe" | "unigram"
  index_t vocab = 8192;         // of a tokenizer trained here
  std::string model_file;       // use this tokenizer instead of training one
  double valid_fraction = 0.0;  // for the valid file: of texts the last part, of lines some of them
  JsonFields fields;
  bool document_lines = false;  // in text files, too
  bool document_end = true;     // the tokenizer's eos behind every document, where it has one
  bool document_begin = false;  // its bos before it
  std::string document_eos;     // its end: an id or a token; empty = as the tokenizer's files say
  bool skip_bad_lines = false;  // else the first one is an error
  index_t threads = 0;          // of a process; 0 = its cores
  TokenOutput output = TokenOutput::hdf5;
  index_t part_bytes = 0;  // of the inputs, in one part of the work; 0 = by their size
  index_t line_bytes = index_t{64} << 20;  // longer lines are bad ones
};

struct TokenizeResult {
  std::string train_path, valid_path;    // valid_path empty without a valid part
  std::vector<std::string> older_valid;  // then: files of that name, of an earlier command
  index_t train_tokens = 0, valid_tokens = 0, documents = 0;
  index_t vocab = 0, text_bytes = 0;
  std::vector<std::string> notes;  // on the special tokens
  std::vector<std::string> warnings;
  index_t parts = 0, parts_reused = 0;  // made by an earlier, killed command
  index_t bad_lines = 0;
  std::string first_bad_line;   // with its place
  double bytes_per_second = 0;  // of the texts that were tokenized now; 0 = none
  int workers = 1;              // threads of all processes
};

/// Reads `inputs` (list_texts()), writes `prefix`-train and `prefix`-valid with the endings of the
/// output's format. The parts of the work go to the ranks of `world` and their threads; what comes
/// out does not depend on their number. Finished parts lie in `prefix`.parts until all is done: a
/// command that is called again takes those whose inputs (name, size, time of change) and settings
/// are the same. Collective; the result is rank 0's. `say` (rank 0): how far it is.
/// Error(config) naming file and line of a bad line, and where there is no text at all;
/// Error(unavailable) where another command writes files of this prefix.
TokenizeResult tokenize_corpus(Communicator& world, const std::vector<std::string>& inputs,
                               const std::string& prefix, const TokenizeOptions& options,
                               const std::function<void(const std::string&)>& say = {});

/// The same in one process.
TokenizeResult tokenize_corpus(const std::vector<std::string>& inputs, const std::string& prefix,
                               const TokenizeOptions& options);

/// For a process that is about to end by a signal: removes what is not whole and the
/// lock, keeps finished parts.
void clear_unfinished_parts();

}  // namespace t3d
