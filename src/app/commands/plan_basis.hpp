// What a plan rests on beside the input's shape: on which nodes and devices the ranks are, what is
// said of their speeds, and how much memory they have. A continued run keeps its plan where none of
// that has changed.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "app/config/config_check.hpp"
#include "comm/communicator.hpp"
#include "core/plan.hpp"
#include "device/device.hpp"

namespace t3d {

struct PlanBasis {
  std::vector<std::string> nodes, devices;  // by world rank
  /// Digest of what hetero.file holds; empty where speeds come from elsewhere, and where the file
  /// is gone: a plan that is kept does not need it.
  std::string speeds_file;
  /// One line for the file, one for each rank: its node, a tab, its device.
  [[nodiscard]] std::string text() const;
  /// How many different nodes; 0 where they are not known.
  [[nodiscard]] index_t node_count() const;
};

/// Throws Error(io) naming `source` where the text is not that of a basis.
[[nodiscard]] PlanBasis parse_plan_basis(const std::string& text, const std::string& source);

/// Collective. Throws on all ranks alike where hetero.file is to be followed and cannot be read.
[[nodiscard]] PlanBasis plan_basis(Communicator& world, const Config& config, const Device& device);

/// A plan, and the ranks that it was made for.
struct PlannedRanks {
  const Plan& plan;
  const PlanBasis& basis;
};
/// "ranks 4 -> 3, nodes 4 -> 3, mesh 4 x 1 x 1 -> 1 x 3 x 1": what of these has changed; empty
/// where nothing has.
[[nodiscard]] std::string changed_shape(const PlannedRanks& before, const PlannedRanks& now);

/// Each in a few words, empty where there is no reason for another plan:
/// "rank 1 is on node07 and was on node03";
[[nodiscard]] std::string changed_ranks(const PlanBasis& before, const PlanBasis& now);
/// "hetero.speeds is probe and was equal": what the input says of speeds is another thing than in
/// the input `before`; a key that `origins` does not name asks for nothing.
[[nodiscard]] std::string changed_speeds(const Config& before, const Config& now,
                                         const Origins& origins);
/// "rank 3 at d=0 ... needs 95 MiB (...) and has 64 MiB". `rooms`: bytes by rank, 0 = not known.
[[nodiscard]] std::string lacking_memory(const Plan& plan, const PlanBasis& now,
                                         std::span<const index_t> rooms);

}  // namespace t3d
