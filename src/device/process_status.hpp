// What the system says of a process of this host.
#pragma once
#include "core/types.hpp"

namespace t3d {

struct ProcessStatus {
  char state = '?';      // R, S, T, Z, ...; ? where the system does not say
  index_t started = -1;  // clock ticks from the boot to its start; -1: the system does not say
};

[[nodiscard]] ProcessStatus process_status(index_t pid);
/// Seconds since this process was started; 0 where the system does not say.
[[nodiscard]] double process_age_seconds();

}  // namespace t3d
