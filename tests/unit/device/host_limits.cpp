// Limits of cores and memory, from the texts of control groups of both versions.
#include "device/host_limits.hpp"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "device/core_limits.hpp"
#include "device/device.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

namespace fs = std::filesystem;

TEST_CASE("the group of a process", "[host]") {
  const std::string v2 = "0::/user.slice/job_7/step_0\n";
  CHECK(group_path(v2, "") == "/user.slice/job_7/step_0");
  CHECK(group_path(v2, "cpu").empty());
  const std::string v1 = "12:cpuset:/a\n4:cpu,cpuacct:/slurm/job_7\n3:memory:/m\n0::/\n";
  CHECK(group_path(v1, "cpu") == "/slurm/job_7");
  CHECK(group_path(v1, "memory") == "/m");
  CHECK(group_path(v1, "") == "/");
  CHECK(group_path("", "cpu").empty());
  CHECK(group_path("nonsense", "cpu").empty());
}

TEST_CASE("cores in words and back", "[host]") {
  for (const char* text : {"", "0", "0-3,8", "1,3,5-7,1023"})
    CHECK(cores_text(parse_cores(text)) == text);
  CHECK(cores_text(parse_cores("nonsense,2,5-4,4096,x-7")) == "2");
  const cpu_set_t own = affinity_mask(), all = process_cores();
  cpu_set_t both;
  CPU_AND(&both, &own, &all);
  CHECK(CPU_EQUAL(&both, &own));
}

TEST_CASE("quotas and limits as numbers", "[host]") {
  CHECK(cores_of_cpu_max("150000 100000\n") == 1.5);
  CHECK(cores_of_cpu_max("max 100000\n") == 0);
  CHECK(cores_of_cpu_max("") == 0);
  CHECK(cores_of_cfs("-1\n", "100000\n") == 0);
  CHECK(cores_of_cfs("400000\n", "100000\n") == 4);
  CHECK(cores_of_cfs("400000\n", "") == 0);
  CHECK(memory_limit_of("max\n") == 0);
  CHECK(memory_limit_of("1073741824\n") == index_t{1} << 30);
  CHECK(memory_limit_of("9223372036854771712\n") == 0);
  CHECK(memory_limit_of("") == 0);
  const std::string meminfo = "MemTotal:       24 kB\nMemFree: 1 kB\nMemAvailable:    9 kB\n";
  CHECK(value_of(meminfo, "MemAvailable") == 9 * 1024);
  CHECK(value_of(meminfo, "Mem") == 0);
  CHECK(value_of("file 5\ninactive_file 77\n", "inactive_file") == 77);
  CHECK(value_of("inactive_file_more 5\n", "inactive_file") == 0);
}

/// A tree of files that look like /proc and /sys.
class Tree {
 public:
  Tree() { fs::create_directories(root_ + "/proc/self"); }
  ~Tree() { fs::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  [[nodiscard]] const std::string& root() const { return root_; }

 private:
  std::string root_ =
      (fs::temp_directory_path() / ("t3d-host-" + std::to_string(::getpid()))).string();
};

TEST_CASE("the tightest group on the way counts, version 2", "[host]") {
  const Tree tree;
  tree.write("/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 5000 kB\n");
  tree.write("/proc/self/cgroup", "0::/job/step\n");
  CHECK(core_quota(tree.root()) == 0);
  CHECK(host_memory(tree.root()).total == 8000 * 1024);
  CHECK(host_memory(tree.root()).free == 5000 * 1024);
  tree.write("/sys/fs/cgroup/job/step/cpu.max", "800000 100000\n");
  CHECK(core_quota(tree.root()) == 8);
  tree.write("/sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  CHECK(core_quota(tree.root()) == 2.5);
  tree.write("/sys/fs/cgroup/job/memory.max", "1024000\n");
  tree.write("/sys/fs/cgroup/job/memory.current", "600000\n");
  tree.write("/sys/fs/cgroup/job/memory.stat", "inactive_file 100000\n");
  CHECK(host_memory(tree.root()).total == 1024000);
  CHECK(host_memory(tree.root()).free == 1024000 - 500000);
}

TEST_CASE("processes in several groups have the quotas of all of them", "[host]") {
  using Limits = std::vector<CoreLimit>;
  const auto together = [](const std::vector<Limits>& processes) {
    return cores_together(processes);
  };
  CHECK(together({}) == 0);
  CHECK(together({{{7, 2.5}}, {{7, 2.5}}}) == 2.5);
  CHECK(together({{{1, 4}}, {{2, 4}}, {{3, 4}}, {{4, 1}}}) == 13);  // a container each
  CHECK(together({{{1, 1}}, {}}) == 0);                             // the second has all cores
  CHECK(together({{{9, 6}, {1, 4}}, {{9, 6}, {2, 4}}}) == 6);  // the job has less than its steps
  CHECK(together({{{9, 6}, {1, 4}}, {{9, 6}, {2, 1}}}) == 5);
  CHECK(together({{{9, 6}, {1, 4}}, {{9, 6}}}) == 6);
  const Tree tree;
  tree.write("/proc/self/cgroup", "0::/job/step\n");
  tree.write("/sys/fs/cgroup/job/step/cpu.max", "800000 100000\n");
  tree.write("/sys/fs/cgroup/job/cpu.max", "250000 100000\n");
  tree.write("/sys/fs/cgroup/cpu.max", "max 100000\n");
  const Limits limits = core_limits(tree.root());
  REQUIRE(limits.size() == 2);
  CHECK(limits[0].cores == 2.5);
  CHECK(limits[1].cores == 8);
  CHECK(limits[0].group != limits[1].group);
  CHECK(core_limits(tree.root()) == limits);
}

TEST_CASE("a container sees its own group at the mount, version 1", "[host]") {
  const Tree tree;
  tree.write("/proc/self/cgroup", "4:cpu,cpuacct:/docker/5f\n3:memory:/docker/5f\n0::/\n");
  tree.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000\n");
  tree.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  tree.write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "5000\n");
  tree.write("/sys/fs/cgroup/memory/memory.usage_in_bytes", "3000\n");
  tree.write("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 500\n");
  CHECK(core_quota(tree.root()) == 3);
  CHECK(host_memory(tree.root()).total == 5000);
  CHECK(host_memory(tree.root()).free == 2500);
}

TEST_CASE("every limit on the way, from the host to the own group", "[host]") {
  const Tree tree;
  CHECK(memory_limits(tree.root()).empty());
  tree.write("/proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 5000 kB\nSwapTotal: 1000 kB\n");
  tree.write("/proc/self/cgroup", "3:memory:/job/task_0\n0::/\n");
  const std::string groups = "/sys/fs/cgroup/memory/job";
  for (const auto& [group, limit] : {std::pair{"", "9223372036854771712"}, {"/task_0", "2000"}}) {
    tree.write(groups + group + "/memory.limit_in_bytes", limit);
    tree.write(groups + group + "/memory.usage_in_bytes", "700");
    tree.write(groups + group + "/memory.stat", "total_inactive_file 300\n");
  }
  std::vector<MemoryLimit> limits = memory_limits(tree.root());
  REQUIRE(limits.size() == 2);
  CHECK(limits[0].group.empty());
  CHECK(limits[0].total == 9000 * 1024);
  CHECK(limits[0].free == 5000 * 1024);
  CHECK(limits[1].group == tree.root() + groups + "/task_0");
  CHECK(limits[1].total == 2000);
  CHECK(limits[1].free == 1600);
  tree.write(groups + "/memory.limit_in_bytes", "3000");
  limits = memory_limits(tree.root());
  REQUIRE(limits.size() == 3);
  CHECK(limits[1].group == tree.root() + groups);
  CHECK(host_memory(tree.root()).total == 2000);
}

TEST_CASE("resident memory, with files and without", "[host]") {
  const Tree tree;
  tree.write("/proc/self/status",
             "VmRSS:\t  90 kB\nRssAnon:\t  40 kB\nRssFile:\t  30 kB\nRssShmem:\t  20 kB\n");
  CHECK(resident_memory(tree.root()).all == 90 * 1024);
  CHECK(resident_memory(tree.root()).kept == 60 * 1024);
  CHECK(resident_memory().kept > 0);
  CHECK(resident_memory().all > resident_memory().kept);
}

TEST_CASE("this host has cores and memory, and the CPU device says so", "[host]") {
  CHECK(cores_available() >= 1);
  const HostMemory memory = host_memory();
  CHECK(memory.total > 0);
  CHECK(memory.free > 0);
  CHECK(memory.free <= memory.total);
  const Device::Capacity capacity = make_cpu_device()->capacity();
  CHECK(capacity.total == memory.total);
  CHECK(capacity.free > 0);
}

// Where we may make groups: a real quota of half a core more than one.
TEST_CASE("a real quota is seen", "[host]") {
  const fs::path v1 = "/sys/fs/cgroup/cpu", v2 = "/sys/fs/cgroup";
  const bool first = fs::exists(v1 / "cpu.cfs_quota_us") || fs::exists(v1 / "tasks");
  const fs::path group = (first ? v1 : v2) / ("t3d-test-" + std::to_string(::getpid()));
  std::error_code error;
  if (!fs::create_directory(group, error)) return;
  const auto write = [](const fs::path& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    return static_cast<bool>(file.flush());
  };
  const bool limited = first ? write(group / "cpu.cfs_quota_us", "150000")
                             : write(group / "cpu.max", "150000 100000");
  if (limited && write(group / "cgroup.procs", "0")) {
    CHECK(core_quota() == 1.5);
    CHECK(cores_available() == 1);
    write((first ? v1 : v2) / "cgroup.procs", "0");
  }
  fs::remove(group, error);
}

}  // namespace
}  // namespace t3d
