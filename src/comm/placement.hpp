// Where the ranks sit: nodes, cores, and whether waiting ranks give up their core.
#pragma once
#include <vector>

#include "comm/communicator.hpp"
#include "device/host_limits.hpp"

namespace t3d {

/// Node index of every rank of `world` (collective): nodes are numbered by first appearance. Ranks
/// are on one node where MPI says that they can share memory; threads of one process are.
[[nodiscard]] std::vector<int> node_of_ranks(Communicator& world);

/// This rank's part of the cores that its node's ranks have together; at least 1.
[[nodiscard]] int cores_of_rank(Communicator& world);

/// By rank of `world` (collective): its node has more ranks than cores.
[[nodiscard]] std::vector<bool> crowded_ranks(Communicator& world);

/// Whether Open MPI's blocking waits yield the core (mpi_yield_when_idle); ours always do. False
/// where ranks share cores makes start-up and shutdown slow.
[[nodiscard]] bool yields_when_idle();

}  // namespace t3d
