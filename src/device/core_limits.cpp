#include "device/core_limits.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <map>

#include "device/control_groups.hpp"
#include "device/host_limits.hpp"

namespace t3d {
namespace {

/// The folder's number in the kernel's file system of groups.
std::uint64_t number_of(const std::string& folder) {
  struct stat status {};
  return ::stat(folder.c_str(), &status) == 0 ? status.st_ino : 0;
}

/// Of processes whose limits before `level` are the same.
double together(const std::vector<const std::vector<CoreLimit>*>& processes, std::size_t level) {
  std::map<std::uint64_t, std::vector<const std::vector<CoreLimit>*>> groups;
  for (const auto* limits : processes) {
    if (limits->size() == level) return 0;
    groups[(*limits)[level].group].push_back(limits);
  }
  double sum = 0;
  for (const auto& [group, members] : groups) {
    const double quota = (*members.front())[level].cores;
    const double inside = together(members, level + 1);
    sum += inside > 0 ? std::min(quota, inside) : quota;
  }
  return sum;
}

}  // namespace

std::vector<CoreLimit> core_limits(const std::string& root) {
  std::vector<CoreLimit> limits;
  const auto add = [&](const std::string& controller, const auto& quota_of) {
    const std::vector<std::string> folders = group_folders(root, controller);
    for (auto folder = folders.rbegin(); folder != folders.rend(); ++folder)
      if (const double cores = quota_of(*folder); cores > 0)
        limits.push_back({number_of(*folder), cores});
  };
  add("",
      [](const std::string& folder) { return cores_of_cpu_max(file_text(folder + "/cpu.max")); });
  add("cpu", [](const std::string& folder) {
    return cores_of_cfs(file_text(folder + "/cpu.cfs_quota_us"),
                        file_text(folder + "/cpu.cfs_period_us"));
  });
  return limits;
}

double cores_together(std::span<const std::vector<CoreLimit>> processes) {
  std::vector<const std::vector<CoreLimit>*> all;
  for (const std::vector<CoreLimit>& limits : processes) all.push_back(&limits);
  return all.empty() ? 0 : together(all, 0);
}

}  // namespace t3d
