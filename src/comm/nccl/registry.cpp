#include "comm/registry.hpp"

#include <utility>

#include "comm/nccl/nccl.hpp"

namespace t3d {

bool nccl_built() { return true; }

std::unique_ptr<Communicator> make_gpu_world(Communicator& host_world, Device& device, Queue& queue,
                                             std::unique_ptr<Communicator> host_group) {
  return make_nccl_communicator(host_world, device, queue, {}, std::move(host_group));
}

}  // namespace t3d
