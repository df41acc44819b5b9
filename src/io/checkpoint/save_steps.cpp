#include "io/checkpoint/save_steps.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "comm/agree.hpp"
#include "core/error.hpp"
#include "device/host_limits.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/checkpoint/checkpoint_group.hpp"
#include "io/lock/lease.hpp"

namespace t3d {
namespace {

constexpr double kSpare = 1.02;  // metadata and CRCs on top of the numbers

}  // namespace

SaveGroups::SaveGroups(Communicator& world, index_t ranks_per_file) : all(checkpoint_group(world)) {
  std::vector<std::vector<int>> members;  // in the order of their first ranks
  std::map<std::string, std::size_t> by_key;
  const auto hosts = all_gather_texts(*all, host_name());
  for (int rank = 0; rank < all->size(); ++rank) {
    const std::string key = ranks_per_file > 0 ? std::to_string(rank / ranks_per_file)
                                               : hosts[static_cast<std::size_t>(rank)];
    const auto [place, fresh] = by_key.try_emplace(key, members.size());
    if (fresh) members.emplace_back();
    members[place->second].push_back(rank);
    if (rank == all->rank()) file_number = place->second;
  }
  const std::vector<int>& own = members[file_number];
  one_host = std::all_of(own.begin(), own.end(), [&](int rank) {
    return hosts[static_cast<std::size_t>(rank)] == hosts[static_cast<std::size_t>(own.front())];
  });
  group = all->subgroup(own, kCheckpointAxis);
}

void check_space(const std::string& dir, double bytes) {
  const double needed = bytes * kSpare + (1 << 20);
  const double free = free_bytes(dir);
  if (needed > free)
    throw_error(ExitCode::io, "not enough space for a checkpoint in {}: {} needed, {} free", dir,
                format_bytes(needed), format_bytes(free));
}

std::string node_file_name(std::size_t number, const CheckpointState& state,
                           const std::string& mark) {
  constexpr std::size_t kMost = 40;
  std::string run = state.run_id.substr(0, kMost);
  for (char& letter : run) {
    const bool plain = std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '-';
    if (!plain) letter = '_';
  }
  return fmt::format("node-{:05}.{}.step-{:08}.{}.h5", number, run, state.step, mark);
}

std::string publish_checkpoint(const CheckpointOptions& options, const CheckpointState& state,
                               const Fragment& fragment, const std::string& partial,
                               const std::string& owner) {
  Manifest manifest = manifest_of(state, fragment);
  manifest.files.push_back(write_master(partial, manifest, options.verify));
  sync_path(partial);
  const std::string text = format_manifest(manifest);
  check_files(parse_manifest(text, partial + "/" + kManifestName), partial);
  write_text_durably(partial + "/" + kManifestName, text);
  if (options.lock != nullptr) options.lock->check();
  return publish_folder(partial, options.dir, state, owner);
}

}  // namespace t3d
