// [[nodes]] of the input met by the nodes of the job.
#pragma once
#include "config/nodes.hpp"
#include "run/setup.hpp"

namespace t3d {

/// Of all ranks, the same everywhere.
struct NodeKinds {
  std::vector<std::optional<NodeKind>> of_ranks;
  int rank = 0;                      // this one
  std::vector<std::string> notes{};  // of [[nodes]] that no node is of
};
/// Collective. Throws the config AgreedError of check_node_kinds().
[[nodiscard]] NodeKinds find_node_kinds(Communicator& world, const Config& config);

/// machine_options() with what this rank's kind of node says.
[[nodiscard]] MachineOptions machine_options(const Config& config, const NodeKinds& kinds);

}  // namespace t3d
