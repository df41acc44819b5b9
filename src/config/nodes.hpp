// [[nodes]]: what the user knows of kinds of nodes. A kind is found by the name of the node, a
// feature or the partition, and says how many ranks such a node has, with how many threads, on
// which device, and how fast.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/table_list.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {

/// Keys and checks of the list.
[[nodiscard]] TableList node_list();

/// One rank's node, as its system and its environment tell.
struct NodeFacts {
  std::string name, partition;
  std::vector<std::string> features;
  index_t ranks = 1;  // of the job on it
};
/// Between commas, "&", "|", brackets and spaces.
[[nodiscard]] std::vector<std::string> words_of(std::string_view text);
/// Partition from SLURM_JOB_PARTITION, features from T3D_NODE_FEATURES and SLURM_JOB_CONSTRAINTS.
[[nodiscard]] NodeFacts facts_here(const std::string& name, index_t ranks);
/// '*' stands for any letters, '?' for one.
[[nodiscard]] bool matches_pattern(std::string_view pattern, std::string_view text);
/// The first kind that fits, in the order of the input.
[[nodiscard]] std::optional<NodeKind> kind_of(const Config& config, const NodeFacts& node);
/// What to say of each [[nodes]] that no node of the job is of.
[[nodiscard]] std::vector<std::string> unused_kinds(const Config& config,
                                                    const std::vector<NodeFacts>& nodes);

/// Throws the config Errors of all nodes whose number of ranks is not the stated one, and where all
/// ranks have the speed 0. `kinds`: of each rank.
void check_node_kinds(const std::vector<NodeFacts>& nodes,
                      const std::vector<std::optional<NodeKind>>& kinds);

/// Replaces the curves of ranks with a stated speed. Where all were `measured`, only the ratios of
/// the stated ones are theirs: their level is that of the median one at `work`. Else 1 is the speed
/// of a rank of which nothing is known. Speed 0: no curve at all. `kinds`: by rank.
void state_speeds(const std::vector<std::optional<NodeKind>>& kinds, bool measured,
                  const StepWork& work, Speeds& speeds);

}  // namespace t3d
