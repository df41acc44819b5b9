// What is recorded of hosts: texts of the kernel, libraries of this process, counters of energy.
#include "device/host_facts.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "device/energy_meter.hpp"
#include "support/catch.hpp"
#include "support/scratch_folder.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

void put(const std::string& path, const std::string& text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

}  // namespace

TEST_CASE("clock and sockets of /proc/cpuinfo") {
  const ProcessorFacts facts = parse_cpuinfo(
      "processor\t: 0\ncpu MHz\t\t: 2450.5\nphysical id\t: 0\n\nprocessor\t: 1\ncpu MHz\t\t: "
      "900.0\nphysical id\t: 1\nprocessor\t: 2\nphysical id\t: 1\n");
  CHECK(facts.clock_mhz == Approx(2450.5));
  CHECK(facts.sockets == 2);
  CHECK(parse_cpuinfo("").sockets == 0);
  CHECK(parse_cpuinfo("cpu MHz\n").clock_mhz == Approx(0));
}

TEST_CASE("hosts of one boot are one machine") {
  HostFacts a, b;
  CHECK_FALSE(share_machine({a, b}));  // nothing is known
  a.boot = b.boot = "x";
  CHECK(share_machine({a, b}));
  CHECK_FALSE(share_machine({a}));
  b.boot = "y";
  CHECK_FALSE(share_machine({a, b}));
  std::string boot;  // empty where there is no such file
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  CHECK(host_facts().boot == boot);
}

TEST_CASE("this host and its libraries") {
  const HostFacts facts = host_facts();
  CHECK(facts.cores >= 1);
  CHECK(facts.memory_bytes > 1 << 20);
  CHECK(facts.kernel.starts_with("Linux "));
  const std::vector<std::string> libraries = loaded_libraries();
  const auto is_c = [](const std::string& file) { return file.find("libc") != std::string::npos; };
  CHECK(std::any_of(libraries.begin(), libraries.end(), is_c));
  CHECK(std::is_sorted(libraries.begin(), libraries.end()));
}

TEST_CASE("energy of two processors, one of whose counters begins anew") {
  const test::ScratchFolder folder("energy");
  const std::string rapl = folder.path() + "/sys/class/powercap/";
  for (const char* name : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0", "dtpm"}) {
    put(rapl + name + "/max_energy_range_uj", "1000000");
    put(rapl + name + "/energy_uj", "900000");
  }
  EnergyMeter meter(folder.path());
  CHECK(meter.cpu_joules().value() == Approx(0));
  put(rapl + "intel-rapl:0/energy_uj", "950000");
  put(rapl + "intel-rapl:1/energy_uj", "100000");
  put(rapl + "intel-rapl:0:0/energy_uj", "999999");
  meter.sample();
  CHECK(meter.cpu_joules().value() == Approx(0.05 + 0.2));
  put(rapl + "intel-rapl:1/energy_uj", "150000");
  meter.sample();
  CHECK(meter.cpu_joules().value() == Approx(0.3));
  CHECK(meter.why_no_cpu().empty());
}

TEST_CASE("energy that cannot be read has a reason") {
  const test::ScratchFolder folder("energy");
  const EnergyMeter none(folder.path());
  CHECK_FALSE(none.cpu_joules());
  CHECK(none.why_no_cpu() == "the kernel shows no RAPL counters");
  put(folder.path() + "/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000");
  const EnergyMeter refused(folder.path());
  CHECK_FALSE(refused.cpu_joules());
  CHECK(refused.why_no_cpu().ends_with("intel-rapl:0/energy_uj may not be read"));
}

}  // namespace t3d
