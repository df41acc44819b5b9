// What a run is trained on, as one text: it stands in the checkpoints, and what is continued is
// compared with it. Its hash tells data apart, in logs and in exports.
#pragma once
#include <string>

#include "config/config.hpp"
#include "data/batch_source.hpp"

namespace t3d {

/// The name of the text among a checkpoint's texts; checkpoints of earlier versions have none.
inline constexpr const char* kDataText = "data";

/// "hash 0123456789abcdef", a line "source WEIGHT NAME" for each source and under it a line "BYTES
/// TOKENS CHECKSUM PATH" for each file. The hash is of all that and of the tokenizer; of many
/// files, only the first thousand have lines.
[[nodiscard]] std::string data_text(const BatchSource& train, const DataConfig& data,
                                    std::uint64_t tokenizer_hash);
/// The 16 digits in its first line; empty where there are none.
[[nodiscard]] std::string data_hash(const std::string& data_text);

/// What to say of data that is not what the checkpoint at `where` was trained on; empty when it is.
/// Error(config) when a file has its name and other contents.
[[nodiscard]] std::string data_change(const std::string& before, const std::string& now,
                                      const std::string& where);

/// What samples of `context` tokens do at the ends of documents; empty where there are none.
[[nodiscard]] std::string document_ends_text(const TokenSource& train, index_t context);

}  // namespace t3d
