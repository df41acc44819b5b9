#include "comm/registry.hpp"

#include "comm/nccl/nccl.hpp"

namespace t3d {

bool nccl_built() { return true; }

std::unique_ptr<Communicator> make_gpu_world(Communicator& host_world, Device& device,
                                             Queue& queue) {
  return make_nccl_communicator(host_world, device, queue);
}

}  // namespace t3d
