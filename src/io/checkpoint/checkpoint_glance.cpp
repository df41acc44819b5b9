#include "io/checkpoint/checkpoint_glance.hpp"

#include "io/checkpoint/checkpoint_files.hpp"
#include "io/posix_file.hpp"

namespace t3d {

std::optional<CheckpointGlance> newest_published(const std::string& dir,
                                                 std::optional<index_t> lineage) {
  const CheckpointFolder* newest = nullptr;
  const std::vector<CheckpointFolder> folders = list_checkpoints(dir);
  for (const CheckpointFolder& folder : folders) {  // most steps first
    if (!folder.published || (lineage && folder.lineage != *lineage)) continue;
    if (newest == nullptr || folder.lineage > newest->lineage) newest = &folder;
  }
  if (newest == nullptr) return std::nullopt;
  return CheckpointGlance{newest->path, newest->step, newest->lineage,
                          file_time(newest->path + "/" + kManifestName).value_or(0)};
}

}  // namespace t3d
