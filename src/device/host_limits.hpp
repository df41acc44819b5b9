// What this process may use of its host: cores and memory, as the affinity mask and the control
// groups (versions 1 and 2) allow. A limit may stand in any group above the process's own, so all
// are asked; inside a container the outer ones are not visible.
#pragma once
#include <sched.h>

#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct HostMemory {
  index_t total = 0, free = 0;  // bytes; 0 where nobody knows
};

/// What a host or a control group has for all processes in it.
struct MemoryLimit {
  std::string group;  // its folder; empty = the whole host
  index_t total = 0;  // with the host's swap
  index_t free = 0;   // without swap
};

/// Cores that this process's threads can compute on at once: of the affinity mask, and not more
/// than the quota in whole cores; at least 1.
[[nodiscard]] int cores_available();
/// Of the calling thread; all cores where the system does not say.
[[nodiscard]] cpu_set_t affinity_mask();
/// Of all threads of this process together: a thread may be bound to one core.
[[nodiscard]] cpu_set_t process_cores();
/// "0-3,8": the mask in words, and back. What is no core in a text is left out.
[[nodiscard]] std::string cores_text(const cpu_set_t& mask);
[[nodiscard]] cpu_set_t parse_cores(const std::string& text);
/// Cores of the mask, not more than a quota > 0 in whole cores; at least 1.
[[nodiscard]] int cores_of(const cpu_set_t& mask, double quota);
/// The quota alone, in cores; 0 = none. Files are looked for under `root` (tests).
[[nodiscard]] double core_quota(const std::string& root = "");
/// What the system calls the processor; empty where it does not say.
[[nodiscard]] std::string processor_name(const std::string& root = "");
/// The host's memory or the groups' limit, whichever is less. Cached files count as free.
[[nodiscard]] HostMemory host_memory(const std::string& root = "");
/// The host and every visible group that has a limit, from the outermost to the process's own.
[[nodiscard]] std::vector<MemoryLimit> memory_limits(const std::string& root = "");

struct ResidentMemory {
  index_t all = 0;   // bytes; 0 where nobody knows
  index_t kept = 0;  // of these, what the system cannot drop and read again from a file
};
/// Of this process, now.
[[nodiscard]] ResidentMemory resident_memory(const std::string& root = "");

// The formats, text in, number out.

/// Path of the group in which `controller` ("cpu", "memory") of version 1, or version 2 (""), holds
/// the process of this /proc/PID/cgroup; "" where there is none.
[[nodiscard]] std::string group_path(std::string_view proc_cgroup, std::string_view controller);
/// cpu.max, "150000 100000" = 1.5 cores; 0 = no limit.
[[nodiscard]] double cores_of_cpu_max(std::string_view text);
/// cpu.cfs_quota_us and cpu.cfs_period_us; 0 = no limit.
[[nodiscard]] double cores_of_cfs(std::string_view quota, std::string_view period);
/// memory.max or memory.limit_in_bytes; 0 = no limit (version 1 writes a number near 2^63).
[[nodiscard]] index_t memory_limit_of(std::string_view text);
/// The number after `key` in lines of "key number" (memory.stat) or "key: number kB" (meminfo,
/// status), in bytes; 0 where it is missing.
[[nodiscard]] index_t value_of(std::string_view text, std::string_view key);

/// The name of this machine, as the system has it.
[[nodiscard]] std::string host_name();

}  // namespace t3d
