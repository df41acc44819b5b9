// The world of the MPI tests; the verbs of a test case are issued by all its ranks.
#pragma once
#include "comm/communicator.hpp"

namespace t3d::test {

/// All ranks of this run. After a test case has failed on one rank only, its peers' waits end with
/// an Error(peer_lost) by the watchdog.
[[nodiscard]] t3d::Communicator& world();

}  // namespace t3d::test
