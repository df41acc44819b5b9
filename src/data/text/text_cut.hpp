// Where a long text may be cut so that each piece gives the ids that it has in the whole.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "data/text/input_stream.hpp"

namespace t3d {

/// Bytes of `text` to take now: behind the last newline that no white space follows (tokenizers put
/// runs of white space into one token, and none of them joins a newline with a letter); without
/// one, behind the last newline, else up to the last whole UTF-8 character.
[[nodiscard]] std::size_t text_cut(std::string_view text);

/// The first such place at or behind `offset` of a plain file of `bytes` bytes; where lines are
/// very long, a place between characters.
[[nodiscard]] index_t cut_of_file(const std::string& path, index_t bytes, index_t offset);

/// Calls take(piece) for the pieces of about `most` bytes of a stream's next `bytes` bytes.
void for_pieces(InputStream& stream, index_t bytes, index_t most,
                const std::function<void(std::string_view)>& take);

}  // namespace t3d
