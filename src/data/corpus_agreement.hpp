// Nodes may see different files under one name (local disks, a copy that did not finish). Training
// would go on without an error, on samples that belong to no corpus; so all ranks compare first.
#pragma once
#include <string>

#include "comm/communicator.hpp"
#include "data/token_source.hpp"

namespace t3d {

/// Collective. Names, sizes and numbers of tokens of all files, and the checksums of token files,
/// must be those of rank 0. Error(config) on every rank, naming the lowest rank that differs, its
/// node and the first file that does. `key`: where the names come from ("data.train").
void agree_on_corpus(Communicator& world, const TokenSource& corpus, const std::string& key);

}  // namespace t3d
