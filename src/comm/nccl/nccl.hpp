// The communicator of GPUs, over NCCL. Every group has a stream of its own: a verb waits there for
// what the compute queue holds at the call, Work::wait(queue) makes the queue wait for the verb's
// event, and the host waits for neither.
//
// Sums. NCCL's own reductions add along its rings, in the order of the ring and, for 16-bit
// numbers, with one rounding per hop. The Communicator's promise is rank order, fp32 and one
// rounding. So the default, "ordered", moves the pieces to their owners (the same bytes as a ring)
// and sums them there by a kernel of ours; "ring" leaves sums of equal counts and equal number
// formats to NCCL.
//
// Order. All groups of a rank are used from one thread, in the same program order on all ranks;
// NCCL_LAUNCH_ORDER_IMPLICIT=1, set before NCCL starts, makes NCCL keep that order among them.
//
// Recording (Queue::record): verbs may be recorded. A Work that is started in a recording must be
// waited for, by the queue, in the same recording, and none from outside may be waited for in it.
//
// Failures. NCCL reports lost peers asynchronously: progress() and all waits ask for it. A lost
// peer, or a wait beyond the watchdog's time, aborts all groups of this rank (so that no kernel
// stays on the GPU) and throws Error(peer_lost). Only the wait for a peer that hangs, without
// ending, inside the set-up of a connection is NCCL's own.
#pragma once
#include <memory>
#include <string>

#include "comm/communicator.hpp"

namespace t3d {

/// The same on all ranks.
struct NcclOptions {
  std::string reduction = "ordered";           // ordered | ring
  index_t scratch_bytes = index_t{128} << 20;  // most that an ordered reduction receives at a time
  int max_blocks = 0;                          // thread blocks per NCCL kernel; 0 = NCCL's choice
};

/// The group of all ranks of `host_world` or of those of `host_group`, one of its groups.
/// Collective over that group, which carries the bootstrap and the barriers; its rank order and
/// `host_world`'s ledger are this one's too. Buffers of verbs are memory of `device` (a CUDA one,
/// the current one of this thread), `queue` one of its queues; these and `host_world` must outlive
/// it and its groups. Numbers in host memory go over `host_world` directly. Throws
/// ExitCode::unavailable with NCCL's words where NCCL does not start.
[[nodiscard]] std::unique_ptr<Communicator> make_nccl_communicator(
    Communicator& host_world, Device& device, Queue& queue, const NcclOptions& options = {},
    std::unique_ptr<Communicator> host_group = nullptr);

}  // namespace t3d
