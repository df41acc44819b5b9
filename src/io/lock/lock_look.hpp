// The lock of a run folder, looked at from outside: nothing is written.
#pragma once
#include <string>

namespace t3d {

struct LockLook {
  enum class State {
    none,    // nobody holds it
    alive,   // the owner gives signs of life
    silent,  // it gives none, and may be alive
    ended    // the owner has ended without giving it back, or the lock has expired
  };
  State state = State::none;
  std::string owner;           // "process 4711 on node12, Slurm job 815, run gpt-66f1"
  std::string run;             // of the owner; empty where it is not known
  double silent_seconds = -1;  // since the last sign of life by this host's clock; -1 = no lock
};

/// Where the age of the last sign of life leaves a doubt (the clocks of hosts differ), waits up to
/// `patience_seconds` for the next one. Error(io) when the lock cannot be read.
[[nodiscard]] LockLook look_at_lock(const std::string& folder, double patience_seconds = 3);

}  // namespace t3d
