// The collectives of one group over sizes of messages: samples of a level. By the same queues and
// groups that training uses.
#pragma once
#include <array>

#include "comm/communicator.hpp"
#include "forecast/cluster/cluster.hpp"
#include "hetero/speed/probe.hpp"

namespace t3d {

struct CollectiveBudget {
  double seconds = 2;                  // of all verbs together, about
  index_t bytes = index_t{256} << 20;  // of a buffer at most; the least of a group's counts
};

/// By kLevelVerbs.
using VerbSamples = std::array<std::vector<Sample>, kLevelVerbs.size()>;

/// Collective over `group`, which carries the machine's device memory and has two members at least.
/// So many `groups` do so at once: they begin together, each takes its own time. Memory is asked
/// for before the first message; Error where this rank gets none, and then the others wait.
class GroupCollectives {
 public:
  GroupCollectives(const ProbeMachine& machine, int members, const CollectiveBudget& budget);
  [[nodiscard]] VerbSamples measure(Communicator& group, index_t groups);

 private:
  const ProbeMachine& machine_;
  CollectiveBudget budget_;
  Tensor whole_, number_;
};

/// Level from what its groups measured: tables with fits, and alpha and beta of a message. Samples
/// of one shape become their median.
void set_measured(const VerbSamples& samples, Level& level);

}  // namespace t3d
