// What a checkpoint folder holds, lineage by lineage, seen by one rank. Internal to `io`.
#pragma once
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_files.hpp"

namespace t3d {

class History {
 public:
  /// Reads every manifest in `dir`. Error(io) when the folder cannot be looked at. A checkpoint
  /// whose manifest is damaged belongs to the lineage in its name.
  explicit History(const std::string& dir);

  /// Published folders of the newest lineage, newest first, then those that it came from. Never
  /// one that it left behind. Error(io) when there are folders of steps but not one manifest.
  [[nodiscard]] std::vector<std::string> candidates() const;
  /// Folders of later steps than `step` that have no manifest (all of them for -1).
  [[nodiscard]] std::vector<std::string> without_manifest(index_t step) const;
  /// Published folders of other lineages.
  [[nodiscard]] std::vector<std::string> others(index_t lineage) const;
  /// Of a run that goes on from `from`, or from nothing.
  [[nodiscard]] Lineage next(const CheckpointInfo* from) const;

 private:
  struct Entry {
    CheckpointFolder folder;
    Lineage lineage;  // of the manifest; of a damaged one only the number, from the name
    bool read = false;
  };
  [[nodiscard]] index_t newest() const;
  [[nodiscard]] const Lineage* lineage_of(index_t number) const;

  std::string dir_;
  std::vector<Entry> entries_;  // published, highest step first
  std::vector<CheckpointFolder> bare_;
};

/// "a, b, c and 7 more"
[[nodiscard]] std::string list_of(const std::vector<std::string>& paths);

}  // namespace t3d
