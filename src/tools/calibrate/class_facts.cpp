#include "tools/calibrate/class_facts.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <numeric>
#include <set>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "config/nodes.hpp"
#include "core/node_list.hpp"

namespace t3d {
namespace {

/// What a rank says of itself, a line each.
enum Fact {
  kHost,
  kDevice,
  kProcessor,
  kCores,
  kGpus,
  kMemory,
  kFeatures,
  kPartition,
  kLeaf,
  kFacts
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines(1);
  for (const char letter : text)
    if (letter == '\n')
      lines.emplace_back();
    else
      lines.back() += letter;
  lines.resize(kFacts);
  return lines;
}

/// "core.leaf1.node7" of Slurm's topology plugin: the switch right above the node.
std::string leaf_here() {
  const char* const address = std::getenv("SLURM_TOPOLOGY_ADDR");
  const char* const pattern = std::getenv("SLURM_TOPOLOGY_ADDR_PATTERN");
  if (address == nullptr || pattern == nullptr ||
      std::string_view(pattern).find("switch") == std::string_view::npos)
    return {};
  const std::string_view all(address);
  const auto dot = all.rfind('.');
  return std::string(all.substr(0, dot == std::string_view::npos ? 0 : dot));
}

std::string own_facts(const Machine& machine, index_t ranks_here) {
  const NodeFacts facts = facts_here(host_name(), ranks_here);
  const bool gpu = machine.choice().gpu >= 0;
  const index_t free =
      machine.device().capacity().free / (gpu ? machine.choice().sharers : ranks_here);
  constexpr index_t kUnit = index_t{64} << 20;  // what changes from minute to minute is left out
  std::vector<std::string> lines(kFacts);
  lines[kHost] = facts.name;
  lines[kDevice] = machine.device().name();
  lines[kProcessor] = processor_name();
  lines[kCores] = std::to_string(machine.threads());
  lines[kGpus] = gpu ? "1" : "0";
  lines[kMemory] = std::to_string(free / kUnit * kUnit);
  lines[kFeatures] = fmt::format("{}", fmt::join(facts.features, ","));
  lines[kPartition] = facts.partition;
  lines[kLeaf] = leaf_here();
  for (std::string& line : lines) std::replace(line.begin(), line.end(), '\n', ' ');
  return fmt::format("{}", fmt::join(lines, "\n"));
}

const NodeClass* listed_class(const Cluster& known, const std::string& host) {
  for (const NodeClass& one : known.classes) {
    const auto names = names_of_node_list(one.node_list);
    if (std::find(names.begin(), names.end(), host) != names.end()) return &one;
  }
  return nullptr;
}

index_t number(const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); }

}  // namespace

std::string class_name_of(const std::string& device) {
  std::string name;
  for (const char letter : device) {
    const bool word = std::isalnum(static_cast<unsigned char>(letter)) != 0;
    if (word)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "nodes" : name;
}

JobClasses find_classes(Machine& machine, const Cluster& known, const std::string& name,
                        const std::vector<double>& slowdown) {
  Communicator& world = machine.world();
  JobClasses job;
  job.node_of_ranks = node_of_ranks(world);
  job.slowdown.assign(job.node_of_ranks.size(), 1);
  const bool emulated = !slowdown.empty();
  if (emulated) {
    job.slowdown = slowdown;
    std::iota(job.node_of_ranks.begin(), job.node_of_ranks.end(), 0);
  }
  const auto here = [&](std::size_t rank) {
    return std::count(job.node_of_ranks.begin(), job.node_of_ranks.end(), job.node_of_ranks[rank]);
  };
  const auto texts =
      all_gather_texts(world, own_facts(machine, here(static_cast<std::size_t>(world.rank()))));
  std::map<std::string, int> kinds;  // by what makes ranks unlike
  std::vector<std::set<int>> nodes;
  std::vector<std::vector<std::string>> hosts;
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::vector<std::string> facts = lines_of(texts[rank]);
    const int node = job.node_of_ranks[rank];
    job.place_on_node.push_back(static_cast<int>(
        std::count(job.node_of_ranks.begin(),
                   job.node_of_ranks.begin() + static_cast<std::ptrdiff_t>(rank), node)));
    job.leaves.push_back(facts[kLeaf]);
    const NodeClass* const listed = emulated ? nullptr : listed_class(known, facts[kHost]);
    const std::string kind =
        listed != nullptr
            ? "listed " + listed->name
            : fmt::format("{} {} {} {} {} {}", facts[kDevice], facts[kProcessor], facts[kCores],
                          facts[kGpus], here(rank), job.slowdown[rank]);
    const auto [entry, fresh] = kinds.try_emplace(kind, static_cast<int>(job.classes.size()));
    const auto at = static_cast<std::size_t>(entry->second);
    if (fresh) {
      NodeClass one;
      const bool by_device = facts[kGpus] == "1" || facts[kProcessor].empty();
      one.name = listed != nullptr ? listed->name
                 : emulated        ? fmt::format("x{}", job.slowdown[rank])
                                   : class_name_of(facts[by_device ? kDevice : kProcessor]);
      one.ranks_per_node = here(rank);
      one.cores_per_rank = number(facts[kCores]);
      one.gpus_per_rank = number(facts[kGpus]);
      one.device = facts[kDevice];
      one.processor = facts[kProcessor];
      one.memory_bytes = number(facts[kMemory]);
      one.partition = facts[kPartition];
      if (!facts[kFeatures].empty()) one.features = words_of(facts[kFeatures]);
      job.classes.push_back(one);
      nodes.emplace_back();
      hosts.emplace_back();
    }
    NodeClass& one = job.classes[at];
    one.memory_bytes = std::min(one.memory_bytes, number(facts[kMemory]));
    if (nodes[at].insert(node).second && !emulated) hosts[at].push_back(facts[kHost]);
    job.class_of_ranks.push_back(entry->second);
  }
  std::set<std::string> names;
  for (std::size_t at = 0; at < job.classes.size(); ++at) {
    NodeClass& one = job.classes[at];
    one.nodes = std::ssize(nodes[at]);
    if (job.classes.size() == 1 && !name.empty()) one.name = name;
    const std::string wished = one.name;
    for (int number = 2; !names.insert(one.name).second; ++number)
      one.name = fmt::format("{}-{}", wished, number);
    if (known.find_class(one.name) == nullptr) one.node_list = node_list_of(hosts[at]);
  }
  return job;
}

}  // namespace t3d
