// What this host and this process are, for the record of a run: a reader of a figure must be able
// to tell on what it was measured. Nothing here decides anything. What the system does not say is
// empty or 0.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct GpuFacts {
  std::string name, identity, driver;
  index_t memory_bytes = 0;
};

struct HostFacts {
  std::string name, kernel, processor;
  std::string boot;                // of the kernel; hosts that have the same one are one machine
  int cores = 0;                   // of the host that are switched on
  int sockets = 0;                 // processors
  double quota_cores = 0;          // of the control groups; 0 = none
  double clock_mhz = 0;            // of the first core, now
  double most_clock_mhz = 0;       // by its maker
  index_t memory_bytes = 0;        // of the host
  index_t memory_limit_bytes = 0;  // of the control groups; 0 = none
  std::vector<GpuFacts> gpus;      // that the driver shows to this process
};

/// Files are looked for under `root` (tests); GPUs are asked of the driver.
[[nodiscard]] HostFacts host_facts(const std::string& root = "");

/// Some of these hosts are one machine: namespaces or containers, whose messages never leave it.
[[nodiscard]] bool share_machine(const std::vector<HostFacts>& hosts);

/// "cpu MHz" of the first core and the number of different "physical id" in /proc/cpuinfo.
struct ProcessorFacts {
  double clock_mhz = 0;
  int sockets = 0;
};
[[nodiscard]] ProcessorFacts parse_cpuinfo(const std::string& text);

/// Files of the shared libraries that this process has loaded, links followed, so that their names
/// carry their versions: "/usr/lib/x86_64-linux-gnu/libhdf5_serial.so.103.3.0". Ascending.
[[nodiscard]] std::vector<std::string> loaded_libraries();

/// The linker's build id of this program in hexadecimal digits: another one where its code is
/// another. Empty where it was linked without.
[[nodiscard]] std::string program_build_id();

/// Variables of the environment that change how this program and its libraries compute or send,
/// with their values, by name.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> telling_environment();

}  // namespace t3d
