// Which ranks of the job are alike: classes of nodes, by what their systems say.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "forecast/cluster/cluster.hpp"
#include "train/machine.hpp"

namespace t3d {

/// Of the job, the same on all ranks.
struct JobClasses {
  std::vector<NodeClass> classes;   // facts without rates; `nodes` of the job
  std::vector<int> class_of_ranks;  // by world rank
  std::vector<int> node_of_ranks;   // by world rank
  std::vector<int> place_on_node;   // by world rank, from 0
  std::vector<std::string> leaves;  // by world rank: the switch, as Slurm names it; may be empty
  std::vector<double> slowdown;     // by world rank: emulated; 1 = none
};

/// Collective. `known`: a node that one of its classes lists has that class's name. `name`: of the
/// only class of the job; empty = made of what is known. `slowdown`: empty, or one for each rank;
/// then each rank counts as a node, and ranks are alike whose factors are.
[[nodiscard]] JobClasses find_classes(Machine& machine, const Cluster& known,
                                      const std::string& name, const std::vector<double>& slowdown);

/// "AMD EPYC 7763" -> "amd-epyc-7763"
[[nodiscard]] std::string class_name_of(const std::string& device);

}  // namespace t3d
