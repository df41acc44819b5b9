// Quotas of cores in control groups, which may stand inside each other: which ones bind a process,
// and how many cores several processes have together.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace t3d {

struct CoreLimit {
  std::uint64_t group = 0;  // the same number in every container of a host
  double cores = 0;
  friend bool operator==(const CoreLimit&, const CoreLimit&) = default;
};

/// Of this process, from the outermost visible group with a quota to its own. Files are looked for
/// under `root` (tests).
[[nodiscard]] std::vector<CoreLimit> core_limits(const std::string& root = "");

/// Cores of processes with these limits on one host; 0 = as many as it has. A group gives no more
/// than its quota, nor than the groups inside it together.
[[nodiscard]] double cores_together(std::span<const std::vector<CoreLimit>> processes);

}  // namespace t3d
