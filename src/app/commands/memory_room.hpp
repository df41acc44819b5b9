// How much memory each rank has for its tensors and messages: of its GPU, of its node, of the
// control group that it shares with other ranks, or what [emulate] says.
#pragma once
#include <string>
#include <vector>

#include "app/config/config.hpp"
#include "comm/communicator.hpp"
#include "core/plan.hpp"
#include "device/device.hpp"
#include "hetero/cost/memory.hpp"

namespace t3d {

struct MemoryRoom {
  index_t bytes = 0;  // 0 where nobody knows
  /// More is not there: a plan that needs it is refused. Else memory that others use now may become
  /// free, or the host may swap.
  bool hard = false;
  std::string where;  // "node03 has 1.50 GiB free of 4.00 GiB, for 2 ranks"
};

/// Collective over `world`, before the rank has tensors. `gpu_sharers`: ranks on this rank's GPU; 0
/// = it computes on the CPU.
[[nodiscard]] MemoryRoom memory_room(Communicator& world, const Config& config,
                                     const Device& device, int gpu_sharers);
/// Collective. MemoryRoom::bytes of all ranks.
[[nodiscard]] std::vector<index_t> gather_rooms(Communicator& world, const MemoryRoom& room);

/// Empty where the room suffices, or where nobody knows; else the arithmetic in words.
[[nodiscard]] std::string memory_shortage(const Coord& coord, const MemoryCost& memory,
                                          const MemoryRoom& room, bool on_gpu);

}  // namespace t3d
