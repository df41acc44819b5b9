#include "device/host_facts.hpp"

#include <link.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string_view>

#include "device/control_groups.hpp"
#include "device/host_limits.hpp"
#include "device/nvml.hpp"

namespace t3d {
namespace {

std::string kernel_name() {
  utsname name{};
  if (::uname(&name) != 0) return {};
  return std::string(name.sysname) + " " + name.release + " " + name.machine;
}

/// The least limit of a group; 0 where there is none.
index_t group_memory(const std::string& root) {
  index_t least = 0;
  for (const MemoryLimit& limit : memory_limits(root))
    if (!limit.group.empty() && (least == 0 || limit.total < least)) least = limit.total;
  return least;
}

/// The text behind the colon of a line of /proc/cpuinfo.
std::string behind_colon(const std::string& line) {
  const std::size_t colon = line.find(':');
  const std::size_t at = line.find_first_not_of("\t :", colon);
  return colon == std::string::npos || at == std::string::npos ? "" : line.substr(at);
}

int add_library(dl_phdr_info* info, std::size_t, void* list) {
  std::error_code none;
  const std::string name = info->dlpi_name == nullptr ? "" : info->dlpi_name;
  if (name.empty()) return 0;  // the program itself
  const std::filesystem::path file = std::filesystem::canonical(name, none);
  if (!none) static_cast<std::set<std::string>*>(list)->insert(file.string());
  return 0;
}

}  // namespace

ProcessorFacts parse_cpuinfo(const std::string& text) {
  ProcessorFacts facts;
  std::set<std::string> sockets;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("cpu MHz") && facts.clock_mhz <= 0)
      facts.clock_mhz = std::strtod(behind_colon(line).c_str(), nullptr);
    if (line.starts_with("physical id")) sockets.insert(behind_colon(line));
  }
  facts.sockets = static_cast<int>(sockets.size());
  return facts;
}

HostFacts host_facts(const std::string& root) {
  HostFacts facts;
  facts.name = host_name();
  facts.kernel = kernel_name();
  facts.processor = processor_name(root);
  facts.cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  const ProcessorFacts processor = parse_cpuinfo(file_text(root + "/proc/cpuinfo"));
  facts.sockets = processor.sockets;
  facts.clock_mhz = processor.clock_mhz;
  const std::string most =
      file_text(root + "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  facts.most_clock_mhz = std::strtod(most.c_str(), nullptr) / 1000;  // kHz
  facts.quota_cores = core_quota(root);
  facts.memory_bytes = value_of(file_text(root + "/proc/meminfo"), "MemTotal");
  facts.memory_limit_bytes = group_memory(root);
  facts.gpus = nvml_gpus();
  return facts;
}

std::vector<std::string> loaded_libraries() {
  std::set<std::string> files;
  dl_iterate_phdr(add_library, &files);
  return {files.begin(), files.end()};
}

std::vector<std::pair<std::string, std::string>> telling_environment() {
  // mpirun adds many OMPI_MCA_ of its own: only what users choose by.
  constexpr std::array<std::string_view, 15> kTelling{
      "OMP_",         "KMP_",          "DNNL_",        "ONEDNN_",        "NCCL_",
      "UCX_",         "CUDA_VISIBLE_", "T3D_",         "HDF5_",          "OMPI_MCA_mpi_",
      "OMPI_MCA_btl", "OMPI_MCA_pml",  "OMPI_MCA_mtl", "OMPI_MCA_hwloc", "MALLOC_"};
  std::vector<std::pair<std::string, std::string>> found;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    const bool tells = std::any_of(kTelling.begin(), kTelling.end(),
                                   [&](std::string_view name) { return text.starts_with(name); });
    if (tells && equals != std::string_view::npos)
      found.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace t3d
