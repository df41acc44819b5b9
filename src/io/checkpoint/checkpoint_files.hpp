// The folders and files of checkpoints, seen by one rank. Internal to `io`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.hpp"
#include "io/posix_file.hpp"

namespace t3d {

/// DIR/step-00001200, .../step-00001200.lineage-2, and with .1, .2, ... behind where that name was
/// taken: what is published is never written over.
struct CheckpointFolder {
  index_t step = 0, lineage = 0, attempt = 0;  // as the name says
  std::string path;
  bool published = false;  // has a manifest, of whatever quality
};

/// Highest step (then lineage, attempt) first. Empty when `dir` does not exist; Error(io) when it
/// or something in it cannot be looked at.
[[nodiscard]] std::vector<CheckpointFolder> list_checkpoints(const std::string& dir);

/// A new folder to write in, which is no checkpoint yet. `owner` makes its name unique.
[[nodiscard]] std::string make_partial_folder(const std::string& dir, const CheckpointState& state,
                                              const std::string& owner);

/// Gives a partial folder the first free name of its step, durably; that name's path.
[[nodiscard]] std::string publish_folder(const std::string& partial, const std::string& dir,
                                         const CheckpointState& state, const std::string& owner);

/// A published folder gets a partial name first: half removed, it is no checkpoint. Never throws.
void remove_checkpoint(const std::string& path, const std::string& owner) noexcept;

/// All that stand in `dir`, whoever began them, but for the one that `owner` may be writing now:
/// only for the owner of the lock.
void remove_partial_folders(const std::string& dir, const std::string& owner);

/// Reads and checks DIR/step-.../MANIFEST.json and the presence and size of every node file and
/// index.
[[nodiscard]] std::string read_manifest_text(const std::string& path);
void check_files(const Manifest& manifest, const std::string& path);

/// The CRCs of a node file's blocks, checked against the manifest.
[[nodiscard]] std::vector<std::uint32_t> read_crc_table(const FileReader& reader,
                                                        const ManifestFile& file);

/// Reads a whole node file, compares the CRC of every block, and returns the CRC of the file.
/// Error(io) names file and data set. `number` is the file's number in the manifest, `index` has
/// its boxes.
std::uint32_t verify_node_file(const std::string& folder, const Manifest& manifest, index_t number,
                               const FileIndex& index);

/// Of these many boxes at once is written in master.h5: there a box has two texts and a rectangle.
inline constexpr index_t kMasterBoxes = index_t{1} << 18;

/// Writes and reads back DIR/step-.../master.h5, for which it reads the indexes of all node files,
/// whole once and then line by line; its entry for the manifest.
[[nodiscard]] ManifestFile write_master(const std::string& folder, const Manifest& manifest,
                                        bool verify, index_t most_boxes = kMasterBoxes);

}  // namespace t3d
