#include "app/commands/plan_basis.hpp"

#include <fmt/format.h>

#include <set>

#include "app/commands/first_plan.hpp"
#include "app/commands/setup.hpp"
#include "app/config/nodes.hpp"
#include "comm/agree.hpp"
#include "core/random.hpp"
#include "device/host_limits.hpp"
#include "hetero/planner/memory_fit.hpp"
#include "io/posix_file.hpp"

namespace t3d {
namespace {

std::string digest_of_file(Communicator& world, const HeteroConfig& hetero) {
  if (hetero.speeds != SpeedSource::file || world.size() == 1) return {};
  std::string digest;
  all_or_none(world, [&] {
    if (world.rank() == 0 && path_exists(hetero.file))
      digest = fmt::format("{:016x}", stream_of(read_speeds_file(hetero.file)));
  });
  return broadcast_text(world, digest);
}

}  // namespace

std::string PlanBasis::text() const {
  std::string text = speeds_file + "\n";
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    text += fmt::format("{}\t{}\n", nodes[rank], devices[rank]);
  return text;
}

index_t PlanBasis::node_count() const {
  return std::ssize(std::set<std::string>(nodes.begin(), nodes.end()));
}

PlanBasis parse_plan_basis(const std::string& text, const std::string& source) {
  PlanBasis basis;
  std::size_t end = text.find('\n'), at = end + 1;
  basis.speeds_file = text.substr(0, end);
  for (; end != std::string::npos && at < text.size(); at = end + 1) {
    const std::size_t tab = text.find('\t', at);
    end = text.find('\n', at);
    if (tab >= end || end == std::string::npos)
      throw_error(ExitCode::io, "{}: no node and device in '{}'", source,
                  text.substr(at, end - at));
    basis.nodes.push_back(text.substr(at, tab - at));
    basis.devices.push_back(text.substr(tab + 1, end - tab - 1));
  }
  return basis;
}

PlanBasis plan_basis(Communicator& world, const Config& config, const Device& device) {
  return {all_gather_texts(world, host_name()), all_gather_texts(world, std::string(device.name())),
          digest_of_file(world, config.hetero)};
}

std::string changed_shape(const PlannedRanks& before, const PlannedRanks& now) {
  std::string text;
  const auto compare = [&](const char* what, const auto& then, const auto& here) {
    if (then != here)
      text += fmt::format("{}{} {} -> {}", text.empty() ? "" : ", ", what, then, here);
  };
  compare("ranks", before.plan.ranks, now.plan.ranks);
  if (before.basis.node_count() > 0)
    compare("nodes", before.basis.node_count(), now.basis.node_count());
  compare("mesh", before.plan.mesh().describe(), now.plan.mesh().describe());
  return text;
}

std::string changed_ranks(const PlanBasis& before, const PlanBasis& now) {
  if (before.nodes.size() != now.nodes.size()) return {};  // another number: asked for elsewhere
  for (std::size_t rank = 0; rank < now.nodes.size(); ++rank) {
    if (before.nodes[rank] != now.nodes[rank])
      return fmt::format("rank {} is on {} and was on {}", rank, now.nodes[rank],
                         before.nodes[rank]);
    if (before.devices[rank] != now.devices[rank])
      return fmt::format("rank {} computes on {} and did on {}", rank, now.devices[rank],
                         before.devices[rank]);
  }
  if (before.speeds_file != now.speeds_file && !before.speeds_file.empty() &&
      !now.speeds_file.empty())
    return "hetero.file holds other speeds";
  return {};
}

std::string changed_speeds(const Config& before, const Config& now, const Origins& origins) {
  if (node_kinds_text(before) != node_kinds_text(now)) return "[[nodes]] has changed";
  for (const char* name : {"hetero.speeds", "hetero.file"}) {
    const Key& key = *find_key(name);
    const std::string then = value_text(key, before), wanted = value_text(key, now);
    const bool counts = now.hetero.speeds == SpeedSource::file || key.name != "file";
    if (counts && origins.contains(name) && then != wanted)
      return fmt::format("{} is {} and was {}", name, wanted, then);
  }
  return {};
}

std::string lacking_memory(const Plan& plan, const PlanBasis& now, std::span<const index_t> rooms) {
  Speeds speeds;  // of them, only memory and device count
  speeds.ranks.resize(rooms.size());
  for (std::size_t rank = 0; rank < rooms.size(); ++rank) {
    speeds.ranks[rank].device = now.devices[rank];
    speeds.ranks[rank].free_bytes = rooms[rank];
  }
  const std::vector<MemoryShortage> all = memory_shortages(plan, speeds);
  return all.empty() ? "" : all.front().text();
}

}  // namespace t3d
