// The results of all parts, one after another, as the output that was asked for.
#pragma once
#include <string>

#include "data/tokenize/part_worker.hpp"

namespace t3d {

struct MergedTokens {
  std::string path;  // the first file of the output
  index_t tokens = 0, text_bytes = 0;
  PartNotes notes;  // sums, and the first bad line
};

/// Of the parts' results of `which` ("train", "valid"), in the order of the texts, writes
/// `prefix`-`which` with the output's ending. Error(io) when a part's file is not there or damaged.
[[nodiscard]] MergedTokens merge_parts(const TokenizePlan& plan, const std::string& folder,
                                       const std::string& which, const TokenizeOptions& options,
                                       const std::string& prefix, const TokenFileInfo& info);

}  // namespace t3d
