// MANIFEST.json: what a checkpoint holds and where. Plain JSON whose last line is the CRC32C of all
// lines before it. It carries the byte offset of every data set (as HDF5 reports it), so that
// loading needs neither HDF5's global lock nor a walk through its metadata: ranks read the blocks
// they need with pread, in file order.
//
// The CRCs of the 1 MiB blocks lie in the node file itself, in one data set in the order of
// the pieces: per piece they would cost as many data sets again, and in the manifest every rank
// would read everybody's. The manifest has the CRC of that table.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/box.hpp"
#include "io/checkpoint/checkpoint.hpp"

namespace t3d {

/// One stored box: data set "<tensor>/<box>" of file number `file`.
struct ManifestPiece {
  Box box;
  index_t file = 0;
  index_t offset = 0;     // bytes, in the file
  index_t first_crc = 0;  // in the file's table
};

struct ManifestTensor {
  DType dtype = DType::f32;
  index_t rows = 0, cols = 0;
  bool vector = false;
  std::vector<ManifestPiece> pieces;
};

struct ManifestFile {
  std::string name;
  index_t bytes = 0;
  std::int64_t crc = -1;  // of the whole file; -1 when it was not read again
  index_t table_offset = 0, table_count = 0;
  std::uint32_t table_crc = 0;
};

struct Manifest {
  CheckpointState state;
  std::vector<ManifestFile> files;  // node files; then the master
  std::map<std::string, ManifestTensor> tensors;
};

inline constexpr const char* kManifestName = "MANIFEST.json";
inline constexpr const char* kMasterName = "master.h5";
inline constexpr const char* kCrcTableName = "block_crc32c";

[[nodiscard]] std::vector<Box> boxes_of(const ManifestTensor& tensor);
[[nodiscard]] std::string format_manifest(const Manifest& manifest);
/// Error(io) naming `path` when the text is damaged or from an unknown version, and when a text
/// that only looks right would lead outside of a file, a tensor or the folder.
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& path);

[[nodiscard]] std::string dataset_name(const std::string& tensor, const Box& box);
/// Seed of the CRCs of a data set's blocks: names the run, the step and the place.
[[nodiscard]] std::uint32_t dataset_seed(const CheckpointState& state, const std::string& dataset);

/// One file's part of a manifest as text, for sending.
[[nodiscard]] std::string format_fragment(const Manifest& fragment);
/// Adds a fragment (its only file becomes the next one). Error(io) when tensors disagree.
void add_fragment(Manifest& manifest, const std::string& text);

}  // namespace t3d
