// The course of recursive vector halving (Maleki et al. 2021, section 4), for any number of
// replicas: the tree of core/adasum_tree.hpp, a node of which is a run of replicas that together
// hold one vector, each a range of it. Pure arithmetic.
//
//   equal halves     partners swap halves of their ranges; each combines one
//   unequal halves   (6 = 4 + 2) the ranks of the smaller, right one hand their ranges over to
//   those
//                    of the left one and wait for the end
//
// On the way back every message goes the other way.
#pragma once
#include <vector>

#include "core/types.hpp"

namespace t3d {

struct Range {
  index_t begin = 0, end = 0;
  [[nodiscard]] index_t size() const { return end - begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// Part of the vector that goes to or comes from a replica.
struct RvhPiece {
  int replica = 0;
  Range range;
};

/// One merge as one replica sees it.
struct RvhMerge {
  index_t first = 0, middle = 0, last = 0;  // replicas [first, middle) merge with [middle, last)
  std::vector<RvhPiece> sends, receives;
  Range kept;         // what this replica combines and holds from now on; empty: nothing
  bool lower = true;  // it belongs to [first, middle)
};

/// Merges of `count` elements, the deepest level first. Where the replica has no part in a level,
/// first = last.
[[nodiscard]] std::vector<RvhMerge> rvh_plan(index_t replicas, index_t replica, index_t count);

}  // namespace t3d
