#include "app/launch_guard.hpp"

#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "comm/idle_clock.hpp"
#include "core/env_seconds.hpp"
#include "core/error.hpp"
#include "device/host_limits.hpp"
#include "sched/stop_signal.hpp"

namespace t3d {
namespace {

double launch_seconds() { return env_seconds("T3D_LAUNCH_SECONDS", 180); }

/// As the launcher says; MPI cannot be asked yet.
std::string rank_text() {
  for (const char* name : {"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (const char* rank = std::getenv(name)) return rank;
  return "?";
}

/// Two ranks speak for all: one of them may be the one that is missing.
[[noreturn]] void end(ExitCode code, const std::string& reason) {
  const std::string rank = rank_text();
  if (rank.size() == 1 && rank <= "1")
    std::fputs(
        fmt::format("transformer3d: rank {} on node {}: {}\n", rank, host_name(), reason).c_str(),
        stderr);
  _exit(static_cast<int>(code));
}

}  // namespace

LaunchGuard::LaunchGuard(bool parallel) {
  if (parallel) thread_ = std::thread(&LaunchGuard::watch, this);
}

LaunchGuard::~LaunchGuard() {
  met_ = true;
  if (thread_.joinable()) thread_.join();
}

void LaunchGuard::watch() {
  constexpr std::chrono::milliseconds kLook{20};
  const double limit = launch_seconds();
  IdleClock clock(IdleClock::Clock::now());  // a job may be suspended while it starts
  while (!met_) {
    if (wait_for_stop_signal(kLook) != 0)
      end(ExitCode::retry, "asked to stop by a signal before the ranks had met");
    const double waited = clock.look(IdleClock::Clock::now());
    if (limit > 0 && waited > limit)
      end(ExitCode::peer_lost,
          fmt::format(
              "the ranks have not met within {:.0f} s (T3D_LAUNCH_SECONDS): one of them may "
              "have died inside MPI_Init; with Slurm set SLURM_PMIX_FENCE=tree",
              limit));
  }
}

}  // namespace t3d
