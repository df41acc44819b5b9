// What saving consists of, whoever writes the node files: ranks (checkpoint_save.cpp) or processes
// beside them (io/writer). Internal to `io`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "io/checkpoint/checkpoint_plan.hpp"

namespace t3d {

/// Who shares a file with this rank.
struct SaveGroups {
  /// Collective over `world`. `ranks_per_file`: as CheckpointOptions.
  SaveGroups(Communicator& world, index_t ranks_per_file);
  std::unique_ptr<Communicator> all, group;  // the first rank of a group writes its file
  std::size_t file_number = 0;
  bool one_host = true;  // all ranks of this group are on one
};

/// Error(io) where `dir` has no room for so many bytes of tensors.
void check_space(const std::string& dir, double bytes);

/// A name that no other checkpoint's file has: a master file in the wrong folder finds nothing
/// there.
[[nodiscard]] std::string node_file_name(std::size_t number, const CheckpointState& state,
                                         const std::string& mark);

/// Master and manifest beside the node files in `partial`, all durable, and the manifest such that
/// it is read again; then the folder's name. The path.
[[nodiscard]] std::string publish_checkpoint(const CheckpointOptions& options,
                                             const CheckpointState& state, const Fragment& fragment,
                                             const std::string& partial, const std::string& owner);

}  // namespace t3d
