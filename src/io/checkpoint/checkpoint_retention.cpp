// Which checkpoints go after a new one has been published. Lineage and step are those of the name;
// of the newest, and of what is to go, the manifest is read: an error of reading keeps a
// checkpoint.
#include <algorithm>

#include "core/error.hpp"
#include "io/checkpoint/checkpoint_files.hpp"
#include "io/lock/lease.hpp"

namespace t3d {
namespace {

/// As far as its manifest and the sizes of its files tell.
bool is_whole(const CheckpointFolder& folder) {
  try {
    check_files(parse_manifest(read_manifest_text(folder.path), folder.path), folder.path);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

void retain(const CheckpointOptions& options, const CheckpointState& state,
            const std::string& published, const std::string& owner) {
  index_t kept = 0;
  for (const CheckpointFolder& folder : list_checkpoints(options.dir)) {
    const bool fresh = folder.path == published;
    if (!fresh && (!folder.published || folder.lineage != state.lineage.number)) continue;
    const bool major = options.major_every > 0 && folder.step % options.major_every == 0;
    const bool among_newest = kept < std::max<index_t>(options.keep, 1);
    if (!fresh && ((major && !among_newest) || !is_whole(folder))) continue;
    if (fresh || among_newest) {
      ++kept;
      continue;
    }
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
