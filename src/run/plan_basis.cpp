#include "run/plan_basis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "comm/agree.hpp"
#include "config/nodes.hpp"
#include "core/random.hpp"
#include "device/host_limits.hpp"
#include "hetero/planner/memory_fit.hpp"
#include "io/posix_file.hpp"
#include "run/first_plan.hpp"
#include "run/setup.hpp"

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

/// Of this rank.
std::string cores_here(const Machine& machine) {
  const int threads = machine.threads();
  std::string text = fmt::format("{} thread{}", threads, threads == 1 ? "" : "s");
  if (const std::string name = processor_name(); !name.empty()) text += " on " + name;
  if (const double quota = core_quota(); quota > 0)
    text += fmt::format(", {:.4g} cores at most", quota);
  return text;
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  for (std::size_t at = 0; at <= line.size();) {
    const std::size_t end = std::min(line.find('\t', at), line.size());
    fields.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return fields;
}

}  // namespace

std::string PlanBasis::text() const {
  std::string text = speeds_file;
  if (matmul.flops_per_second > 0)
    text += fmt::format("\t{}\t{:.17g}\t{}", matmul.kind, matmul.flops_per_second, matmul.size);
  text += "\n";
  for (std::size_t rank = 0; rank < nodes.size(); ++rank)
    text += fmt::format("{}\t{}{}\n", nodes[rank], devices[rank],
                        cores.empty() ? "" : "\t" + cores[rank]);
  return text;
}

index_t PlanBasis::node_count() const {
  return std::ssize(std::set<std::string>(nodes.begin(), nodes.end()));
}

PlanBasis parse_plan_basis(const std::string& text, const std::string& source) {
  PlanBasis basis;
  std::size_t end = text.find('\n'), at = end + 1;
  const std::vector<std::string> first = fields_of(text.substr(0, end));
  basis.speeds_file = first.front();
  if (first.size() == 4)
    basis.matmul = {first[1], std::strtod(first[2].c_str(), nullptr),
                    std::strtoll(first[3].c_str(), nullptr, 10)};
  for (; end != std::string::npos && at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    const std::vector<std::string> fields = fields_of(text.substr(at, end - at));
    if (fields.size() < 2 || end == std::string::npos)
      throw_error(ExitCode::io, "{}: no node and device in '{}'", source,
                  text.substr(at, end - at));
    basis.nodes.push_back(fields[0]);
    basis.devices.push_back(fields[1]);
    if (fields.size() > 2) basis.cores.push_back(fields[2]);
  }
  if (basis.cores.size() != basis.nodes.size()) basis.cores.clear();
  return basis;
}

PlanBasis plan_basis(const Machine& machine, const Config& config) {
  Communicator& world = machine.world();
  PlanBasis basis;
  basis.nodes = all_gather_texts(world, host_name());
  basis.devices = all_gather_texts(world, std::string(machine.device().name()));
  basis.cores = all_gather_texts(world, cores_here(machine));
  basis.speeds_file = digest_of_file(world, config.hetero);
  return basis;
}

MatmulRate known_matmul_rate(const PlanBasis& before, const PlanBasis& now) {
  const bool same = before.nodes.size() == now.nodes.size() && !before.cores.empty() &&
                    changed_ranks(before, now).empty();
  return same ? before.matmul : MatmulRate{};
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
    if (!before.cores.empty() && before.cores[rank] != now.cores[rank])
      return fmt::format("rank {} has {} and had {}", rank, now.cores[rank], before.cores[rank]);
  }
  if (before.speeds_file != now.speeds_file && !before.speeds_file.empty() &&
      !now.speeds_file.empty())
    return "hetero.file holds other speeds";
  return {};
}

std::string changed_speeds(const Config& before, const Config& now, const Origins& origins) {
  const TableList& nodes = *find_list("nodes");
  if (list_text(nodes, before) != list_text(nodes, now)) return "[[nodes]] has changed";
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
