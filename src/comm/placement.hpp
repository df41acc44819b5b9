// Where the ranks sit: nodes, cores, and whether waiting ranks give up their core.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace t3d {

/// Node index of every rank of `world` (collective): nodes are numbered by first appearance.
[[nodiscard]] std::vector<int> node_of_ranks(Communicator& world);

[[nodiscard]] std::string host_name();

/// Cores that this process may run on (its affinity mask).
[[nodiscard]] int cores_available();

/// Whether Open MPI's blocking waits yield the core (mpi_yield_when_idle); ours always do. False
/// where ranks share cores makes start-up and shutdown slow.
[[nodiscard]] bool yields_when_idle();

}  // namespace t3d
