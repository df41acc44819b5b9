// A folder that all nodes write to must be one: on clusters /tmp and the like are each node's own,
// and half of a checkpoint would go where nobody finds it.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace t3d {

/// Collective. One rank of each node (`nodes`: by rank) writes a small file into `dir`, and rank 0
/// looks for all of them. Error(config) that names the first node whose file it does not see within
/// `patience_seconds`, Error(io) where a node cannot write. `token`: of this start, on every rank.
void check_shared_folder(Communicator& world, const std::vector<int>& nodes, const std::string& dir,
                         const std::string& token, double patience_seconds = 10);

/// Removes what a check left that was killed. Under the folder's lock, and before a check of one's
/// own. What cannot be removed stays.
void remove_old_checks(const std::string& dir) noexcept;

}  // namespace t3d
