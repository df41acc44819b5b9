#include "app/spin_limit.hpp"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <string>

#include "device/host_limits.hpp"

extern "C" const char __ehdr_start;  // NOLINT: by the linker; this program's first byte

namespace t3d {
namespace {

constexpr const char* kRounds = "1000";

bool has_one_thread() {
  const char* threads = std::getenv("OMP_NUM_THREADS");
  return (threads != nullptr && std::string(threads) == "1") || cores_available() == 1;
}

/// What the kernel started is this program, and not another one that has loaded it (ld.so): that
/// would get wrong arguments.
bool is_started_by_kernel() {
  const auto& header = reinterpret_cast<const ElfW(Ehdr)&>(__ehdr_start);
  return getauxval(AT_PHDR) == reinterpret_cast<std::uintptr_t>(&__ehdr_start) + header.e_phoff;
}

}  // namespace

void limit_spinning(char** argv) {
  if (std::getenv("GOMP_SPINCOUNT") != nullptr || std::getenv("OMP_WAIT_POLICY") != nullptr) return;
  if (has_one_thread() || !is_started_by_kernel()) return;
  // By its own name: what shows processes shows that.
  std::array<char, PATH_MAX> path{};
  if (readlink("/proc/self/exe", path.data(), path.size() - 1) <= 0) return;
  if (setenv("GOMP_SPINCOUNT", kRounds, 1) != 0) return;
  execv(path.data(), argv);
  unsetenv("GOMP_SPINCOUNT");
}

}  // namespace t3d
