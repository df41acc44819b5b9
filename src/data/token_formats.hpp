// One file of a corpus, in one of the formats that token_source.hpp lists.
#pragma once
#include <memory>
#include <string>

#include "core/choices.hpp"
#include "data/token_card.hpp"
#include "data/token_source.hpp"

namespace t3d {

/// Error(no_input) when there is no such file; Error(config) when its signature is that of another
/// format than the one asked for, or when neither signature nor ending says what it is; Error(io)
/// when it is not whole.
[[nodiscard]] TokenCard read_token_card(const std::string& path, TokenFormat format);

/// The file is opened when it is first read. Error(io) then, where its length is not the card's.
[[nodiscard]] std::shared_ptr<TokenSource> open_token_file(TokenCard card);

}  // namespace t3d
