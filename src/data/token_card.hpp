// What is known of a file of a corpus without its tokens. One rank of a node reads it, the others
// get it as a message: 64 ranks that each look into every file of a corpus are a burden for the
// file system that all of a cluster's nodes share.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/choices.hpp"
#include "io/hdf5/token_file.hpp"

namespace t3d {

struct TokenCard {
  std::string path;
  index_t bytes = 0;                       // of the file
  index_t header_bytes = 0, id_bytes = 0;  // of a flat file of ids; 0 = an HDF5 token file
  TokenFileHeader header;                  // of that
};

/// All files that match `patterns` (globs, each expanded in sorted order). Errors: list_files(),
/// read_token_card().
[[nodiscard]] std::vector<TokenCard> read_token_cards(const std::vector<std::string>& patterns,
                                                      TokenFormat format);

/// Collective over `world`; `mates` are its ranks that see the same files under the same names
/// (ranks_of_folder). The first of them reads the cards, the others get them. What fails is thrown
/// on all ranks of `world`, with rank and node.
[[nodiscard]] std::vector<TokenCard> share_token_cards(Communicator& world, Communicator& mates,
                                                       const std::vector<std::string>& patterns,
                                                       TokenFormat format);

/// Collective: the ranks of this node that were started in the same folder.
[[nodiscard]] std::unique_ptr<Communicator> ranks_of_folder(Communicator& world);

/// As one message, and back. A tokenizer's model that several files have in a row is sent once.
[[nodiscard]] std::string text_of_cards(const std::vector<TokenCard>& cards);
[[nodiscard]] std::vector<TokenCard> cards_of_text(const std::string& text);

}  // namespace t3d
