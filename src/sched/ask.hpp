// Runs a program of the system, with a time limit, and takes what it prints.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace t3d {

/// Standard output of `words` (found by PATH), of 1 MiB at most; nothing where it cannot be
/// started, fails, or takes longer: then it is killed. The child is in a process group of its own,
/// and blocks the signals that the caller blocks. Variables that change what Slurm's commands print
/// (SLURM_TIME_FORMAT, SINFO_FORMAT and the like) are kept from it.
[[nodiscard]] std::optional<std::string> output_of(const std::vector<std::string>& words,
                                                   double limit_seconds);

}  // namespace t3d
