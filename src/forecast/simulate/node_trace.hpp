// Nodes that came and went, as somebody wrote it down: what a simulation replays. Readers take
// texts (files are read above this floor); `source` names the file in messages. A broken line is
// Error(config) "source:line: what"; so are more than kMostChanges changes, and a trace without any
// node.
#pragma once
#include <string>
#include <vector>

#include "core/types.hpp"
#include "forecast/simulate/hazard.hpp"

namespace t3d {

inline constexpr std::size_t kMostChanges = 2'000'000;

struct NodeChange {
  double seconds = 0;       // from the beginning of the trace
  index_t change = 0;       // +n nodes come, -n are taken
  double born_seconds = 0;  // taken ones: when they had come
  friend bool operator==(const NodeChange&, const NodeChange&) = default;
};

struct SeenNode {
  std::string node;
  NodeLife life;
};

struct NodeTrace {
  std::string source;
  double seconds = 0;               // to its end; > 0
  std::vector<NodeChange> changes;  // ascending; those of one moment are one event
  std::vector<SeenNode> lives;      // of every node, lost or still there at the end
  std::string only_user;            // of sacct: whose jobs these are; empty: of several, or unknown
};

/// Those of the nodes in `list` (expand_node_list); of all where it is empty.
[[nodiscard]] std::vector<NodeLife> lives_of(const NodeTrace& trace, const std::string& list);

/// Columns time_s, change (+1 or -1), node (an id that is there once at a time), after a line with
/// their names; times ascend. As the Bamboo authors' traces are given (NSDI 2023).
[[nodiscard]] NodeTrace parse_node_trace(const std::string& text, const std::string& source);

/// `sacct --parsable2` or csv with NodeList, Start, End and State in any order among other columns,
/// named in the first line. A node is there from its first Start on; an End in state PREEMPTED
/// takes it, the next Start on it brings it back. One in state NODE_FAIL takes one of the job's
/// nodes: that whose next Start is the latest. Other ends take nothing. Lines of steps (a JobID
/// with a dot), of jobs without nodes ("None assigned") and not yet started ones are passed over;
/// an End of "Unknown" is the end of the trace. Lives are the times in which a job holds a node,
/// lost where the job's end takes it. A column User says whose jobs these are. Times as
/// 2026-11-22T14:00:00, of one time zone.
[[nodiscard]] NodeTrace parse_sacct(const std::string& text, const std::string& source);

/// One of both, by the first line.
[[nodiscard]] NodeTrace parse_any_trace(const std::string& text, const std::string& source);

}  // namespace t3d
