// What a checkpoint holds and where. MANIFEST.json, the root, stays small however many boxes there
// are: state, files, tensors, and for each tensor which node files hold boxes of it and in which
// rectangle these lie. The boxes themselves are in one index per node file (file_index.hpp), which
// the rank that wrote that file writes, and which only those read who need boxes of that file.
//
// Both are lines of JSON, the last of them the CRC32C of all lines before it; the root also has
// size and CRC of every index. Version 1 had all boxes in the root: it is read as if its indexes
// were in memory.
//
// Indexes carry the byte offset of every data set (as HDF5 reports it), so that loading needs
// neither HDF5's global lock nor a walk through its metadata: ranks read the blocks they need with
// pread, in file order. The CRCs of the 1 MiB blocks lie in the node file itself, in one data set
// in the order of the pieces; the root has the CRC of that table.
#pragma once
#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/box.hpp"
#include "io/checkpoint/checkpoint.hpp"

namespace t3d {

/// One stored box: data set "<tensor>/<box>" of a node file.
struct ManifestPiece {
  Box box;
  index_t offset = 0;     // bytes, in the file
  index_t first_crc = 0;  // in the file's table
};

/// Bytes of memory that a box of a node file takes while the index of that file is written or read:
/// text, boxes, and the numbers of one tensor as JSON. 95 to 131 were measured; for forecasts.
inline constexpr index_t kIndexBytesPerBox = 160;

/// The boxes of one node file, by tensor.
using FileIndex = std::map<std::string, std::vector<ManifestPiece>>;

struct StoredShape {
  DType dtype = DType::f32;
  index_t rows = 0, cols = 0;
  bool vector = false;
  friend bool operator==(const StoredShape&, const StoredShape&) = default;
};

/// Of one tensor, what one node file holds: so many boxes, all of them in `bounds`.
struct FileRange {
  index_t file = 0;  // number in the manifest
  Box bounds;
  index_t boxes = 0;
  friend bool operator==(const FileRange&, const FileRange&) = default;
};

/// Which files hold a tensor, in ascending order. The same for many tensors (the blocks of a
/// transformer are cut alike), and stored once for all of them.
using Cut = std::vector<FileRange>;

struct ManifestTensor : StoredShape {
  std::size_t cut = 0;  // number in the manifest
};

struct ManifestFile {
  std::string name;
  index_t bytes = 0;
  std::int64_t crc = -1;  // of the whole file; -1 when it was not read again
  index_t table_offset = 0, table_count = 0;
  std::uint32_t table_crc = 0;
  std::string index;  // name of its index; "" of the master, and in version 1
  index_t index_bytes = 0;
  std::uint32_t index_crc = 0;
};

struct Manifest {
  CheckpointState state;
  std::vector<ManifestFile> files;  // node files; then the master
  std::map<std::string, ManifestTensor> tensors;
  std::vector<Cut> cuts;
  std::vector<FileIndex> indexes;  // of version 1: by file; else none

  [[nodiscard]] const Cut& cut_of(const ManifestTensor& tensor) const { return cuts[tensor.cut]; }
};

inline constexpr const char* kManifestName = "MANIFEST.json";
inline constexpr const char* kMasterName = "master.h5";
inline constexpr const char* kCrcTableName = "block_crc32c";
/// Nothing longer is read as a manifest or an index, and nothing longer is published.
inline constexpr index_t kManifestMostBytes = index_t{1} << 30;

[[nodiscard]] std::string format_manifest(const Manifest& manifest);
/// Error(io) naming `path` when the text is damaged or from an unknown version, and when a text
/// that only looks right would lead outside of a file, a tensor or the folder.
[[nodiscard]] Manifest parse_manifest(const std::string& text, const std::string& path);

/// Of all files.
[[nodiscard]] index_t boxes_of(const Manifest& manifest, const ManifestTensor& tensor);

[[nodiscard]] std::string dataset_name(const std::string& tensor, const Box& box);
/// Seed of the CRCs of a data set's blocks: names the run, the step and the place.
[[nodiscard]] std::uint32_t dataset_seed(const CheckpointState& state, const std::string& dataset);

}  // namespace t3d
