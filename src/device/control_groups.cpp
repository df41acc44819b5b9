#include "device/control_groups.hpp"

#include <fstream>
#include <iterator>

#include "device/host_limits.hpp"

namespace t3d {

std::string file_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> group_folders(const std::string& root, const std::string& controller) {
  std::string path = group_path(file_text(root + "/proc/self/cgroup"), controller);
  if (path.empty()) return {};
  const std::string mount = root + "/sys/fs/cgroup" + (controller.empty() ? "" : "/" + controller);
  std::vector<std::string> folders;
  for (;; path.resize(path.rfind('/'))) {
    if (path == "/") path.clear();
    folders.push_back(mount + path);
    if (path.empty()) return folders;
  }
}

}  // namespace t3d
