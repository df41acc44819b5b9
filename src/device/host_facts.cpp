#include "device/host_facts.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>
#include <span>
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

/// The GNU build id among the notes of a segment, whose parts begin at multiples of `align`.
std::string build_id_among(std::string_view notes, std::size_t align) {
  const auto padded = [align](std::size_t size) { return (size + align - 1) / align * align; };
  constexpr std::string_view kGnu("GNU\0", 4);
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) head;
    std::memcpy(&head, notes.data(), sizeof head);
    const std::size_t text = sizeof head + padded(head.n_namesz), end = text + head.n_descsz;
    if (end > notes.size()) break;
    if (head.n_type == NT_GNU_BUILD_ID && notes.substr(sizeof head, head.n_namesz) == kGnu) {
      std::string digits;
      for (const char letter : notes.substr(text, head.n_descsz))
        digits += fmt::format("{:02x}", static_cast<unsigned char>(letter));
      return digits;
    }
    notes.remove_prefix(std::min(notes.size(), padded(end)));
  }
  return {};
}

/// The first object is the program itself; the others are not looked at.
int read_build_id(dl_phdr_info* info, std::size_t, void* id) {
  auto& found = *static_cast<std::string*>(id);
  for (const auto& part : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    if (part.p_type != PT_NOTE || !found.empty()) continue;
    const auto* const begin = reinterpret_cast<const char*>(info->dlpi_addr + part.p_vaddr);
    found = build_id_among({begin, part.p_memsz}, part.p_align == 8 ? 8 : 4);
  }
  return 1;
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
  facts.boot = file_text(root + "/proc/sys/kernel/random/boot_id");
  facts.boot.resize(std::min(facts.boot.size(), facts.boot.find('\n')));
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

bool share_machine(const std::vector<HostFacts>& hosts) {
  std::set<std::string> boots;
  return std::any_of(hosts.begin(), hosts.end(), [&](const HostFacts& host) {
    return !host.boot.empty() && !boots.insert(host.boot).second;
  });
}

std::string program_build_id() {
  std::string id;
  dl_iterate_phdr(read_build_id, &id);
  return id;
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
