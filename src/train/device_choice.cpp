#include "train/device_choice.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "comm/registry.hpp"
#include "core/counted.hpp"
#include "core/error.hpp"
#include "ops/registry.hpp"

namespace t3d {
namespace {

/// What one rank can have: an identity of its GPU, or the reason why there is none.
struct Candidate {
  int ordinal = -1;
  std::string identity, name, reason;
};

// Ranks of a node take its GPUs in turn. Where Slurm shows each rank one GPU only, they all call it
// number 0; the identity tells them apart.
Candidate own_candidate(int place_on_node, bool hidden) {
  Candidate own;
  if (hidden) {
    own.reason = "its [[nodes]] says device = \"cpu\"";
    return own;
  }
  try {
    const std::vector<Gpu> gpus = visible_gpus();
    if (gpus.empty()) {
      own.reason = "no GPU is visible";
      return own;
    }
    const Gpu& gpu = gpus[static_cast<std::size_t>(place_on_node) % gpus.size()];
    own.ordinal = gpu.ordinal;
    own.identity = gpu.identity;
    own.name = gpu.name;
  } catch (const Error& error) {
    own.reason = error.what();
  }
  return own;
}

std::string list_of(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  if (ranks.size() <= kShown) return fmt::format("{}", fmt::join(ranks, ", "));
  return fmt::format("{}, ... ({} ranks)", fmt::join(ranks.begin(), ranks.begin() + kShown, ", "),
                     ranks.size());
}

/// Everybody's candidates, the same on all ranks.
struct Survey {
  std::vector<std::string> identities, reasons;   // by rank; one of the two is empty
  std::vector<int> without;                       // ranks that see no GPU
  std::map<std::string, std::vector<int>> users;  // ranks by GPU
  [[nodiscard]] bool all_have() const { return without.empty(); }
  [[nodiscard]] bool own_each() const { return all_have() && users.size() == identities.size(); }
};

Survey survey(Communicator& world, const Candidate& own) {
  Survey all;
  all.identities = all_gather_texts(world, own.identity);
  all.reasons = all_gather_texts(world, own.reason);
  const std::vector<int> nodes = node_of_ranks(world);
  for (std::size_t rank = 0; rank < all.identities.size(); ++rank) {
    if (all.identities[rank].empty()) {
      all.without.push_back(static_cast<int>(rank));
      continue;
    }
    all.users[fmt::format("{}/{}", nodes[rank], all.identities[rank])].push_back(
        static_cast<int>(rank));
  }
  return all;
}

/// World ranks with a GPU of their own, in their order.
std::vector<int> owners(const Survey& all, DeviceRule device) {
  std::vector<int> ranks;
  for (const auto& [gpu, users] : all.users)
    if (users.size() == 1 || device == DeviceRule::mixed) ranks.push_back(users.front());
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

/// `owners` of `ranks` have a GPU of their own.
TransportKind choose_transport(TransportRule rule, std::size_t owners, std::size_t ranks) {
  const bool some = nccl_built() && owners > 1;
  const bool all = some && owners == ranks;
  if (rule == TransportRule::nccl && ranks > 1 && !all)
    throw AgreedError(ExitCode::unavailable,
                      fmt::format("mesh.transport = \"nccl\" is not possible: {}; use \"{}\"",
                                  nccl_built() ? "it needs a GPU of its own for every rank"
                                               : "this program was built without NCCL",
                                  some ? "auto" : "staged"));
  if (rule == TransportRule::staged || !some) return TransportKind::staged;
  return all ? TransportKind::nccl : TransportKind::nccl_and_staged;
}

}  // namespace

DeviceChoice choose_device(Communicator& world, DeviceRule device, TransportRule transport,
                           bool hidden) {
  DeviceChoice choice;
  choice.alone = world.size() == 1;
  if (device == DeviceRule::cpu || (device == DeviceRule::automatic && !cuda_built()))
    return choice;

  const std::vector<int> nodes = node_of_ranks(world);
  const auto rank = static_cast<std::size_t>(world.rank());
  const auto place = std::count(nodes.begin(), nodes.begin() + world.rank(), nodes[rank]);
  const Candidate own = own_candidate(static_cast<int>(place), hidden);
  const Survey all = survey(world, own);

  if (device == DeviceRule::automatic && !all.own_each()) {
    if (!all.users.empty())
      choice.note = fmt::format(
          "computing on CPUs: {} for {}; mesh.device = \"cuda\" shares GPUs, \"mixed\" "
          "uses them beside CPUs",
          counted(all.users.size(), "GPU"), counted(world.size(), "rank"));
    return choice;
  }
  if (device == DeviceRule::cuda && !all.all_have())
    throw AgreedError(ExitCode::unavailable,
                      fmt::format("mesh.device = \"cuda\", but rank{} {} cannot use a GPU: {}",
                                  all.without.size() == 1 ? "" : "s", list_of(all.without),
                                  all.reasons[static_cast<std::size_t>(all.without.front())]));

  choice.gpus = static_cast<int>(all.users.size());
  if (device == DeviceRule::mixed) {
    const bool first =
        own.ordinal >= 0 && std::any_of(all.users.begin(), all.users.end(), [&](const auto& user) {
          return user.second.front() == world.rank();
        });
    choice.gpu = first ? own.ordinal : -1;
    choice.note = fmt::format("{} on GPUs, {} on CPUs", counted(all.users.size(), "rank"),
                              all.identities.size() - all.users.size());
  } else {
    choice.gpu = own.ordinal;
    choice.sharers =
        static_cast<int>(all.users.at(fmt::format("{}/{}", nodes[rank], own.identity)).size());
    if (!all.own_each())
      choice.note = fmt::format("{} share {}", counted(world.size(), "rank"),
                                counted(all.users.size(), "GPU"));
  }
  const std::vector<int> owning = owners(all, device);
  choice.transport = choose_transport(transport, owning.size(), all.identities.size());
  if (choice.gpus == 0) choice.transport = TransportKind::host;
  const bool owns = std::binary_search(owning.begin(), owning.end(), world.rank());
  choice.owners = owns ? owning : std::vector<int>{world.rank()};
  return choice;
}

}  // namespace t3d
