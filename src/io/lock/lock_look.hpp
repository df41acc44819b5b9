// The lock of a run folder, looked at from outside: nothing is written.
#pragma once
#include <string>

namespace t3d {

struct LockLook {
  enum class State {
    none,    // nobody holds it
    alive,   // the owner gives signs of life
    silent,  // it gives none, and may be alive
    ended    // the owner has ended without giving it back, or was silent until the lock expired
  };
  State state = State::none;
  std::string owner;           // "process 4711 on node12, Slurm job 815, run gpt-66f1"
  std::string run;             // of the owner; empty where it is not known
  double silent_seconds = -1;  // it was seen to give none for so long, or longer; -1 = no lock
};

/// Where the last sign of life is not a recent one by this host's clock, waits up to
/// `patience_seconds` for the next one. Only with a patience of more than kLockExpiresSeconds a
/// lock can expire here: clocks of hosts differ. Error(io) when the lock cannot be read.
[[nodiscard]] LockLook look_at_lock(const std::string& folder, double patience_seconds = 3);

}  // namespace t3d
