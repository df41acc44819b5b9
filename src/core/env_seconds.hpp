// Seconds that the environment may set.
#pragma once

namespace t3d {

/// `fallback` where the variable is missing, or no number of at least 0.
[[nodiscard]] double env_seconds(const char* name, double fallback);

}  // namespace t3d
