#include "io/checkpoint/shared_folder.hpp"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "comm/agree.hpp"
#include "device/host_limits.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kPrefix = ".seen-by-";

std::string file_of(const std::string& dir, const std::string& token, int rank) {
  return fmt::format("{}/{}{}-{}", dir, kPrefix, rank, token);
}

/// To list a folder makes a client of NFS ask its server again for what it believes to know.
bool is_seen(const std::string& dir, const std::string& path, Clock::time_point deadline) {
  while (access(path.c_str(), F_OK) != 0) {
    if (Clock::now() > deadline) return false;
    if (DIR* folder = opendir(dir.c_str())) closedir(folder);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return true;
}

}  // namespace

void check_shared_folder(Communicator& world, const std::vector<int>& nodes, const std::string& dir,
                         const std::string& token, double patience_seconds) {
  const auto first_of = [&](int node) {
    return static_cast<int>(std::find(nodes.begin(), nodes.end(), node) - nodes.begin());
  };
  const int rank = world.rank(), last = *std::max_element(nodes.begin(), nodes.end());
  if (last == 0) return;
  const bool writes = rank != 0 && first_of(nodes[static_cast<std::size_t>(rank)]) == rank;
  const std::vector<std::string> hosts = gather_texts(world, host_name());
  std::optional<Error> wrong;  // the same on all ranks
  const auto together = [&](const auto& work) {
    std::optional<Error> fault;
    if (wrong) return;
    attempt(fault, work);
    try {
      agree(world, fault);
    } catch (const Error& error) {
      wrong = error;
    }
  };
  together([&] {
    if (!writes) return;
    if (access(dir.c_str(), F_OK) != 0)
      throw_error(ExitCode::config, "node {} does not have the folder {}: all nodes must share it",
                  host_name(), dir);
    write_text_durably(file_of(dir, token, rank), host_name());
  });
  together([&] {
    const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                             std::chrono::duration<double>(patience_seconds));
    for (int node = 1; rank == 0 && node <= last; ++node) {
      const int writer = first_of(node);
      if (!is_seen(dir, file_of(dir, token, writer), deadline))
        throw_error(ExitCode::config,
                    "what node {} writes into {} is not seen on node {}: all nodes must share the "
                    "folder (run.dir, checkpoint.dir)",
                    hosts[static_cast<std::size_t>(writer)], dir, hosts.front());
    }
  });
  if (writes) (void)unlink(file_of(dir, token, rank).c_str());
  if (wrong) throw AgreedError(wrong->code(), wrong->what());
}

void remove_old_checks(const std::string& dir) noexcept {
  try {
    for (const std::string& name : list_folder(dir))
      if (name.starts_with(kPrefix)) (void)unlink((dir + "/" + name).c_str());
  } catch (const std::exception&) {  // the next start looks again
  }
}

}  // namespace t3d
