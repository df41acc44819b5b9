// Puts device memory behind host buffers: a communicator that takes a verb's host buffers up to the
// device, has the real communicator do the verb there, and brings them back at the wait. So the
// cases that are written for host memory run over every GPU communicator.
#pragma once
#include <memory>

#include "comm/communicator.hpp"

namespace t3d::test {

/// `inner` carries memory of `device`; both and `queue` must outlive it.
[[nodiscard]] std::unique_ptr<Communicator> make_host_face(Communicator& inner, Device& device,
                                                           Queue& queue);

}  // namespace t3d::test
