// The communicator of a GPU rank in a world where only some ranks have a GPU of their own. Groups
// of such ranks alone go by NCCL, all others, and the world, are staged through host memory.
//
// On the wire a staged group is the host group: ranks without a GPU of their own take part over
// their own communicator (host or staged). subgroup() makes a host group on all of its members and
// an NCCL group among those that have a GPU; of a group of these alone only the latter stays.
#pragma once
#include <memory>
#include <vector>

#include "comm/communicator.hpp"

namespace t3d {

/// `staged` is the whole world of this rank, `gpus` the group of `gpu_ranks` (world ranks, this one
/// among them), in their order; both of one device and queue, over one host world. What is asked of
/// a rank as a whole (progress, waits, limits) is passed to `gpus`, which asks the host world too.
[[nodiscard]] std::unique_ptr<Communicator> make_mixed_communicator(
    std::unique_ptr<Communicator> staged, std::unique_ptr<Communicator> gpus,
    const std::vector<int>& gpu_ranks);

}  // namespace t3d
