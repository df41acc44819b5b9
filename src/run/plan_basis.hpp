// What a plan rests on beside the input's shape: on which nodes and devices the ranks are, with how
// many cores, what is said of their speeds, and how much memory they have. A continued run keeps
// its plan, and what was measured of its ranks, where none of that has changed.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "config/config_check.hpp"
#include "core/plan.hpp"
#include "run/matmul_rate.hpp"
#include "train/machine.hpp"

namespace t3d {

struct PlanBasis {
  std::vector<std::string> nodes, devices;  // by world rank
  /// By world rank: threads, processor, quota: "2 threads on AMD EPYC, 1.5 cores at most". Empty in
  /// checkpoints of earlier versions.
  std::vector<std::string> cores;
  /// Digest of what hetero.file holds; empty where speeds come from elsewhere, and where the file
  /// is gone: a plan that is kept does not need it.
  std::string speeds_file;
  MatmulRate matmul;  // as measured on these ranks
  /// One line for file and rate, one for each rank with its node, its device and its cores, with
  /// tabs between them.
  [[nodiscard]] std::string text() const;
  /// How many different nodes; 0 where they are not known.
  [[nodiscard]] index_t node_count() const;
};

/// Throws Error(io) naming `source` where the text is not that of a basis.
[[nodiscard]] PlanBasis parse_plan_basis(const std::string& text, const std::string& source);

/// Collective over machine.world(). Without a matmul rate. Throws on all ranks alike where
/// hetero.file is to be followed and cannot be read.
[[nodiscard]] PlanBasis plan_basis(const Machine& machine, const Config& config);

/// The rate of `before`, where the ranks are the same.
[[nodiscard]] MatmulRate known_matmul_rate(const PlanBasis& before, const PlanBasis& now);

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
