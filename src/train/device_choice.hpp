// Which rank computes on what, from mesh.device and mesh.transport and what the nodes have.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/choices.hpp"

namespace t3d {

/// One rank's device and how device memory travels.
struct DeviceChoice {
  int gpu = -1;        // this process's number of it; -1 = CPU
  int sharers = 1;     // ranks on this GPU
  int gpus = 0;        // in use by all ranks
  bool nccl = false;   // else, with a GPU: staged through host memory
  bool alone = false;  // the only rank: nothing travels
  std::string note;    // for the log, the same on all ranks; empty = nothing to say
};

/// Collective. Throws the same AgreedError (ExitCode::unavailable) on all ranks where the wish
/// cannot be met, naming the ranks that cannot.
[[nodiscard]] DeviceChoice choose_device(Communicator& world, DeviceRule device,
                                         TransportRule transport);

}  // namespace t3d
