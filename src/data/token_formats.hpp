// One file of a corpus, in one of the formats that token_source.hpp lists.
#pragma once
#include <memory>
#include <string>

#include "core/choices.hpp"
#include "data/token_source.hpp"

namespace t3d {

/// Error(no_input) when there is no such file; Error(config) when its signature is that of another
/// format than the one asked for, or when neither signature nor ending says what it is; Error(io)
/// when it is not whole.
[[nodiscard]] std::shared_ptr<TokenSource> open_token_file(const std::string& path,
                                                           TokenFormat format);

}  // namespace t3d
