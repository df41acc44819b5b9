// Warns of signal handlers that can damage the memory of a training. oneDNN's fp32 matmul keeps its
// stack pointer in a workspace on the heap while its generated code runs (uxlfoundation/oneDNN,
// issue 4845; versions 2.6 to 3.11, repaired in 2026). The kernel writes a handler's frame where
// the stack pointer points, and so over the heap. An alternate stack helps only if every thread has
// one, OpenMP's too, which nobody can see here. This program installs no handlers
// (stop_signal.hpp), but preloaded libraries do: profilers above all.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace t3d {

/// What a process does with one signal.
struct SignalState {
  int number = 0;
  bool handled = false;  // by a function: neither default nor ignored
  bool blocked = false;  // in this thread: the handler cannot run here
  std::string owner;     // file of the handler's code; empty if unknown
};

/// All signals of this process that may come at any instant; not those that an instruction raises
/// (SEGV, BUS, FPE, ILL, ABRT, TRAP, SYS), whose handlers Open MPI and sanitizers have.
[[nodiscard]] std::vector<SignalState> asynchronous_signals();

/// One line for the handlers that can write into the heap, or nothing.
[[nodiscard]] std::string handler_warning(const std::vector<SignalState>& signals);

/// Collective. Rank 0 prints each different warning once, with the number of ranks that have it.
void warn_of_signal_handlers(Communicator& world);

}  // namespace t3d
