// Which checkpoints go after a new one has been published. A checkpoint is removed only for what
// was read in it: an error of reading keeps it.
#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/lock/lease.hpp"

namespace t3d {
namespace {

/// The lineage of a checkpoint that is whole as far as its manifest and sizes tell.
std::optional<index_t> lineage_of_whole(const CheckpointFolder& folder) {
  if (!folder.published) return std::nullopt;
  try {
    const Manifest manifest = parse_manifest(read_manifest_text(folder.path), folder.path);
    check_files(manifest, folder.path);
    return manifest.state.lineage.number;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void retain(const CheckpointOptions& options, const CheckpointState& state,
            const std::string& published, const std::string& owner) {
  index_t kept = 0;
  for (const CheckpointFolder& folder : list_checkpoints(options.dir)) {
    const bool fresh = folder.path == published;
    if (!fresh && lineage_of_whole(folder) != state.lineage.number) continue;
    const bool major = options.major_every > 0 && folder.step % options.major_every == 0;
    const bool among_newest = kept < std::max<index_t>(options.keep, 1);
    if (fresh || among_newest) ++kept;
    if (fresh || among_newest || major) continue;
    if (options.lock != nullptr) options.lock->check();
    remove_checkpoint(folder.path, owner);
  }
  if (options.lock == nullptr) return;
  options.lock->check();
  remove_partial_folders(options.dir, owner);
}

}  // namespace

void apply_retention(const CheckpointOptions& options, const CheckpointState& state,
                     const std::string& published, const std::string& owner) noexcept {
  try {
    retain(options, state, published, owner);
  } catch (const std::exception&) {
    return;  // the new checkpoint is safe; the old ones are looked at again after the next
  }
}

}  // namespace t3d
