#include "device/process_status.hpp"

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace t3d {

ProcessStatus process_status(index_t pid) {
  ProcessStatus status;
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos) return status;
  std::istringstream words(line.substr(name_end + 1));
  std::string word;
  words >> status.state;
  constexpr int kStateField = 3, kStartField = 22;
  for (int field = kStateField; field < kStartField; ++field) words >> word;
  if (words) status.started = std::atoll(word.c_str());
  return status;
}

double process_age_seconds() {
  const index_t started = process_status(::getpid()).started;
  const long ticks = ::sysconf(_SC_CLK_TCK);  // of a second
  struct timespec now {};
  if (started < 0 || ticks <= 0 || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double up = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  return std::max(0.0, up - static_cast<double>(started) / static_cast<double>(ticks));
}

}  // namespace t3d
