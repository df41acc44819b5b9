#include "run/node_kinds.hpp"

#include <fmt/ranges.h>

#include <algorithm>

#include "comm/agree.hpp"
#include "comm/placement.hpp"
#include "device/host_limits.hpp"

namespace t3d {

NodeKinds find_node_kinds(Communicator& world, const Config& config) {
  NodeKinds kinds;
  kinds.rank = world.rank();
  kinds.of_ranks.resize(static_cast<std::size_t>(world.size()));
  if (config.nodes.empty()) return kinds;
  const std::vector<int> numbers = node_of_ranks(world);
  const NodeFacts own = facts_here(
      host_name(),
      std::count(numbers.begin(), numbers.end(), numbers[static_cast<std::size_t>(world.rank())]));
  const std::vector<std::string> names = all_gather_texts(world, own.name);
  const std::vector<std::string> partitions = all_gather_texts(world, own.partition);
  const std::vector<std::string> features =
      all_gather_texts(world, fmt::format("{}", fmt::join(own.features, ",")));
  std::vector<NodeFacts> nodes;
  for (std::size_t rank = 0; rank < names.size(); ++rank) {
    nodes.push_back({names[rank], partitions[rank], words_of(features[rank]),
                     std::count(numbers.begin(), numbers.end(), numbers[rank])});
    kinds.of_ranks[rank] = kind_of(config, nodes.back());
  }
  kinds.notes = unused_kinds(config, nodes);
  all_or_none(world, [&] { check_node_kinds(nodes, kinds.of_ranks); });
  return kinds;
}

MachineOptions machine_options(const Config& config, const NodeKinds& kinds) {
  MachineOptions options = machine_options(config);
  const auto& own = kinds.of_ranks[static_cast<std::size_t>(kinds.rank)];
  if (!own) return options;
  if (own->threads > 0) options.threads = own->threads;
  options.hide_gpus = own->device == NodeDevice::cpu;
  return options;
}

}  // namespace t3d
