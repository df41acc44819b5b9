// How much memory each rank has for its tensors and messages: of its GPU, of its node, of the
// control groups that it shares with other ranks, or what [emulate] says. On the host, programs,
// libraries and the buffers of a checkpoint come first: what they have and what they are going to
// take (resident.hpp).
#pragma once
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config.hpp"
#include "core/plan.hpp"
#include "device/device.hpp"
#include "hetero/cost/memory.hpp"
#include "io/checkpoint/checkpoint.hpp"

namespace t3d {

/// More is not there, whoever else gives memory back: a plan that needs it is refused.
struct MemoryBound {
  index_t bytes = 0;       // for tensors and messages of all of `ranks`
  std::vector<int> ranks;  // of the world, ascending, this one among them
  std::string where;  // "control group /sys/... of node03 allows 4.00 GiB, 0.20 GiB of them ..."
};

struct MemoryRoom {
  index_t bytes = 0;  // this rank's part of what is free now; 0 where nobody knows
  index_t most = 0;   // its part of what the bounds allow; 0 where there is none
  std::vector<MemoryBound> bounds;
};

/// Collective over `world`, before the rank has tensors. `plan`: about what will be trained;
/// `gpu_sharers`: ranks on this rank's GPU, 0 = it computes on the CPU.
[[nodiscard]] MemoryRoom memory_room(Communicator& world, const Config& config, const Plan& plan,
                                     const Device& device, int gpu_sharers);
/// Collective. MemoryRoom::bytes, or MemoryRoom::most, of all ranks.
[[nodiscard]] std::vector<index_t> gather_rooms(Communicator& world, index_t room);

/// Collective. Throws the same Error(unavailable) on all ranks, with the arithmetic, where this
/// plan needs more than a bound allows.
void check_memory(Communicator& world, const Plan& plan, const MemoryRoom& room, bool on_gpu);

/// Collective. Why there is no memory to keep `parts` (this rank's) a second time beside the plan;
/// empty where there is, or where nobody knows. The same on all ranks. GPU ranks have theirs on the
/// host, of which the plan says nothing.
[[nodiscard]] std::string snapshot_shortage(Communicator& world, const Plan& plan,
                                            const std::vector<TensorPart>& parts, bool on_gpu,
                                            const MemoryRoom& room);

/// Empty where the bounds suffice; else the arithmetic in words. `needed`: bytes by world rank.
[[nodiscard]] std::string memory_shortage(const Coord& coord, const MemoryCost& memory,
                                          const MemoryRoom& room, std::span<const index_t> needed,
                                          bool on_gpu);

}  // namespace t3d
