// The folders and files of checkpoints, seen by one rank. Internal to `io`.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.hpp"
#include "io/posix_file.hpp"

namespace t3d {

/// DIR/step-00001200, or step-00001200.1 where the plain name was taken by a published checkpoint
/// (written again after a restart from an older one): what is published is never written over.
struct CheckpointFolder {
  index_t step = 0, attempt = 0;
  std::string path;
  bool published = false;  // has a manifest, of whatever quality
};

/// Newest (highest step, then attempt) first. Empty when `dir` does not exist.
[[nodiscard]] std::vector<CheckpointFolder> list_checkpoints(const std::string& dir);

/// The first free name for this step; removes an unpublished leftover of that name.
[[nodiscard]] std::string prepare_folder(const std::string& dir, index_t step);

/// The manifest goes first: a folder half removed does not look like a checkpoint. Never throws.
void remove_checkpoint(const std::string& path) noexcept;

/// Deletes what is neither among the `keep` newest valid ones, nor a major one, nor `published`;
/// and unpublished folders that are not newer. Never throws: what is left over goes next time.
void apply_retention(const CheckpointOptions& options, const std::string& published) noexcept;

/// Reads and checks DIR/step-.../MANIFEST.json and the presence and size of every node file.
[[nodiscard]] std::string read_manifest_text(const std::string& path);
void check_files(const Manifest& manifest, const std::string& path);

/// The CRCs of a node file's blocks, checked against the manifest.
[[nodiscard]] std::vector<std::uint32_t> read_crc_table(const FileReader& reader,
                                                        const ManifestFile& file);

/// Reads a whole node file, compares the CRC of every block, and returns the CRC of the file.
/// Error(io) names file and data set. `number` is the file's number in the manifest.
std::uint32_t verify_node_file(const std::string& folder, const Manifest& manifest, index_t number);

/// Writes and reads back DIR/step-.../master.h5; its entry for the manifest.
[[nodiscard]] ManifestFile write_master(const std::string& folder, const Manifest& manifest,
                                        bool verify);

}  // namespace t3d
