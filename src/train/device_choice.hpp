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
  bool alone = false;  // the only rank: nothing travels
  std::string note;    // for the log, the same on all ranks; empty = nothing to say
  TransportKind transport = TransportKind::host;  // the same on all ranks
  /// With transport nccl_and_staged: the world ranks that have a GPU of their own, or, for one that
  /// has none, itself.
  std::vector<int> owners;
};

/// Collective. `hidden`: this rank may use no GPU. Throws the same AgreedError
/// (ExitCode::unavailable) on all ranks where the wish cannot be met, naming the ranks that cannot.
[[nodiscard]] DeviceChoice choose_device(Communicator& world, DeviceRule device,
                                         TransportRule transport, bool hidden = false);

}  // namespace t3d
