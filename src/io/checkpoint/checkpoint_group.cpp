#include "io/checkpoint/checkpoint_group.hpp"

#include <numeric>
#include <vector>

namespace t3d {

std::unique_ptr<Communicator> checkpoint_group(Communicator& world) {
  std::vector<int> everybody(static_cast<std::size_t>(world.size()));
  std::iota(everybody.begin(), everybody.end(), 0);
  return world.subgroup(everybody, kCheckpointAxis);
}

}  // namespace t3d
