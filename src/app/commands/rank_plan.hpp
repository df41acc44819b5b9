// What one rank of a job would hold and send. Ranks are simulated one after another in this
// process: the real layers run one real step on a device that only counts memory and a group that
// only counts bytes. Ranks whose parts have equal sizes are alike, so very large jobs need few of
// them.
#pragma once
#include <vector>

#include "core/ledger.hpp"
#include "comm/mesh.hpp"
#include "core/config.hpp"
#include "device/device.hpp"

namespace t3d {

struct RankPlan {
  Coord coord;
  index_t ranks = 0;  // alike
  MemoryAccount memory;
  Ledger counted, predicted;
  index_t parameters = 0;
};

/// The rank at `coord`.
[[nodiscard]] RankPlan simulate_rank(const Config& config, const MeshShape& mesh,
                                     const Coord& coord);
/// Every rank of small jobs, one of each kind of large ones.
[[nodiscard]] std::vector<RankPlan> simulate_ranks(const Config& config, const MeshShape& mesh);

/// Empty where `device` (shared by `sharers` ranks) has room for what `plan` needs, or where nobody
/// knows; else the arithmetic in words.
[[nodiscard]] std::string memory_shortage(const RankPlan& plan, const Device& device, int sharers);

}  // namespace t3d
