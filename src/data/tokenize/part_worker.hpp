// Tokenizes one part into token files of its own.
#pragma once
#include <atomic>
#include <string>

#include "data/tokenize/parts.hpp"
#include "io/hdf5/token_file.hpp"
#include "tokenizer/parts/unicode.hpp"

namespace t3d {

inline const std::atomic<bool> kNeverStop{false};

/// What is to be said of a part besides its tokens; stands in the part's file.
struct PartNotes {
  index_t documents = 0, bad_lines = 0;
  std::string first_bad_line;
  tok::UnknownCharacters unknown;  // of tokenizers that care
  /// A document that began in the part before ends before the first token.
  bool ends_before = false;
};

/// Where the results of a part lie, without the ending: `which` is "train" or "valid".
[[nodiscard]] std::string part_path(const std::string& folder, const TokenizePart& part,
                                    const std::string& which);
/// "train", "valid" or both: what a part gives.
[[nodiscard]] std::vector<std::string> outputs_of(const TokenizePart& part,
                                                  const TokenizeOptions& options);
/// All results are there.
[[nodiscard]] bool is_finished(const std::string& folder, const TokenizePart& part,
                               const TokenizeOptions& options);

/// Thrown where somebody else's failure ends the work.
struct StoppedPart {};

/// Error(config) naming file and line of a bad line, where these are not left out. StoppedPart soon
/// after `stop` becomes true.
void tokenize_part(const TokenizePlan& plan, const TokenizePart& part,
                   const TokenizeOptions& options, const Tokenizer& tokenizer,
                   const std::string& folder, const std::atomic<bool>& stop = kNeverStop);

/// Of a result.
[[nodiscard]] PartNotes notes_of(const TokenFileInfo& info);

}  // namespace t3d
