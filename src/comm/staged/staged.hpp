// The communicator of a device whose memory the host cannot read (a GPU without NCCL, several ranks
// on one GPU, GPU and CPU ranks in one group): down into page-locked host memory, the host group's
// verb there, and up again.
//
// On the wire it is the host group: ranks of one group may use this or the host communicator
// itself, as long as all issue the same verbs in the same order. Results and ledger are the same to
// the last bit and byte.
//
// A verb reads what `queue` has produced at the moment of the call. Work::wait(queue) returns when
// the result has arrived on the host and its way up is queued: kernels queued behind it see it, the
// host goes on. All that is under way advances whenever anybody waits in, or calls progress() of,
// any group of this rank, host groups too. Not for use while a queue records: the host must act in
// the middle of every verb.
#pragma once
#include <memory>

#include "comm/communicator.hpp"

namespace t3d {

/// Collective over `host_world` only in its verbs; any rank may do without. Buffers of verbs are
/// memory of `device`; numbers in host memory go over `host_world` directly. All three must outlive
/// it and its groups.
[[nodiscard]] std::unique_ptr<Communicator> make_staged_communicator(Communicator& host_world,
                                                                     Device& device, Queue& queue);

}  // namespace t3d
