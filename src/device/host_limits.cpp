#include "device/host_limits.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "device/control_groups.hpp"
#include "device/core_limits.hpp"

namespace t3d {
namespace {

constexpr index_t kNoLimit = index_t{1} << 60;  // version 1's "none" is the largest page below 2^63

/// The first number in `text`; -1 where it begins otherwise.
index_t number_in(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  index_t number = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  return result.ec == std::errc() ? number : -1;
}

/// The first line in `text` and what is left of it.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

/// The files in which a group says what it knows of memory, and a word of its statistics.
struct GroupFiles {
  const char *limit, *usage, *reclaimable;
};

/// total = 0 where the group has no limit.
MemoryLimit limit_of_group(const std::string& folder, const GroupFiles& files) {
  MemoryLimit limit{folder, memory_limit_of(file_text(folder + files.limit)), 0};
  if (limit.total == 0) return limit;
  const index_t used = std::max<index_t>(0, number_in(file_text(folder + files.usage)));
  const index_t cached = value_of(file_text(folder + "/memory.stat"), files.reclaimable);
  limit.free = std::max<index_t>(0, limit.total - std::max<index_t>(0, used - cached));
  return limit;
}

}  // namespace

std::string group_path(std::string_view proc_cgroup, std::string_view controller) {
  while (!proc_cgroup.empty()) {
    const std::string_view line = next_line(proc_cgroup);  // number:controller,controller:path
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string list = "," + std::string(line.substr(first + 1, second - first - 1)) + ",";
    const bool unified = list == ",,";
    const bool named = list.find("," + std::string(controller) + ",") != std::string::npos;
    if (controller.empty() ? unified : named) return std::string(line.substr(second + 1));
  }
  return {};
}

double cores_of_cpu_max(std::string_view text) {
  const std::size_t space = std::min(text.find(' '), text.size());
  return cores_of_cfs(text.substr(0, space), text.substr(space));
}

double cores_of_cfs(std::string_view quota, std::string_view period) {
  const index_t of = number_in(quota), in = number_in(period);
  return of > 0 && in > 0 ? static_cast<double>(of) / static_cast<double>(in) : 0;
}

index_t memory_limit_of(std::string_view text) {
  const index_t limit = number_in(text);
  return limit > 0 && limit < kNoLimit ? limit : 0;
}

index_t value_of(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = next_line(text);
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.starts_with(":")) line.remove_prefix(1);
    if (!line.starts_with(" ") && !line.starts_with("\t")) continue;  // a longer key
    const index_t unit = line.ends_with("kB") ? 1024 : 1;
    return std::max<index_t>(0, number_in(line)) * unit;
  }
  return 0;
}

double core_quota(const std::string& root) {
  double cores = 0;
  for (const CoreLimit& limit : core_limits(root))
    cores = cores > 0 ? std::min(cores, limit.cores) : limit.cores;
  return cores;
}

std::string processor_name(const std::string& root) {
  std::ifstream file(root + "/proc/cpuinfo");  // as long as there are cores
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const std::size_t at = line.find_first_not_of("\t :", line.find(':'));
    if (at != std::string::npos) return line.substr(at);
  }
  return {};
}

HostMemory host_memory(const std::string& root) {
  const std::string text = file_text(root + "/proc/meminfo");
  HostMemory memory{value_of(text, "MemTotal"), value_of(text, "MemAvailable")};
  for (const MemoryLimit& limit : memory_limits(root)) {
    if (limit.group.empty()) continue;
    memory.total = memory.total > 0 ? std::min(memory.total, limit.total) : limit.total;
    memory.free = memory.free > 0 ? std::min(memory.free, limit.free) : limit.free;
  }
  return memory;
}

std::vector<MemoryLimit> memory_limits(const std::string& root) {
  const std::string text = file_text(root + "/proc/meminfo");
  std::vector<MemoryLimit> limits;
  const auto add = [&](const MemoryLimit& limit) {
    if (limit.total > 0) limits.push_back(limit);
  };
  const auto add_groups = [&](const std::string& controller, const GroupFiles& files) {
    const std::vector<std::string> folders = group_folders(root, controller);
    for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
      add(limit_of_group(*folder, files));
  };
  add({"", value_of(text, "MemTotal") + value_of(text, "SwapTotal"),
       value_of(text, "MemAvailable")});
  add_groups("", {"/memory.max", "/memory.current", "inactive_file"});
  add_groups("memory", {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"});
  return limits;
}

ResidentMemory resident_memory(const std::string& root) {
  const std::string text = file_text(root + "/proc/self/status");
  return {value_of(text, "VmRSS"), value_of(text, "RssAnon") + value_of(text, "RssShmem")};
}

cpu_set_t affinity_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0)
    for (int core = 0; core < static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); ++core)
      CPU_SET(static_cast<std::size_t>(core), &mask);
  return mask;
}

cpu_set_t process_cores() {
  cpu_set_t all = affinity_mask();
  std::error_code gone;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task", gone)) {
    cpu_set_t mask;
    const int id = std::atoi(thread.path().filename().c_str());
    if (id > 0 && sched_getaffinity(id, sizeof mask, &mask) == 0) CPU_OR(&all, &all, &mask);
  }
  return all;
}

std::string cores_text(const cpu_set_t& mask) {
  std::string text;
  for (std::size_t first = 0; first < CPU_SETSIZE; ++first) {
    if (!CPU_ISSET(first, &mask)) continue;
    std::size_t last = first;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &mask)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(first);
    if (last > first) text += "-" + std::to_string(last);
    first = last;
  }
  return text;
}

cpu_set_t parse_cores(const std::string& text) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    unsigned first = 0, last = 0;
    const int numbers = std::sscanf(part.c_str(), "%u-%u", &first, &last);
    if (numbers < 1) continue;
    for (unsigned core = first; core <= (numbers > 1 ? last : first) && core < CPU_SETSIZE; ++core)
      CPU_SET(core, &mask);
  }
  return mask;
}

int cores_of(const cpu_set_t& mask, double quota) {
  const int cores = std::max(1, CPU_COUNT(&mask));
  return quota > 0 ? std::max(1, std::min(cores, static_cast<int>(quota))) : cores;
}

int cores_available() { return cores_of(affinity_mask(), core_quota()); }

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace t3d
