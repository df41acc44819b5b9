// The index of a node file: a file of JSON beside it, written by whoever wrote the node file. The
// first line says what it is and of which file; then comes a line for each tensor with its boxes,
// so that those of tensors that nobody wants need not be parsed; the last line is as in
// MANIFEST.json. Internal to `io`.
#pragma once
#include <set>
#include <string>
#include <vector>

#include "io/checkpoint/manifest.hpp"

namespace t3d {

/// "index-00003.*.json" of "node-00003.*.h5".
[[nodiscard]] std::string index_name_of(const std::string& node_file);

/// `boxes` and the rectangle around `pieces`, which are not empty.
[[nodiscard]] FileRange range_of(index_t file, const std::vector<ManifestPiece>& pieces);

/// Error(io) when it would be longer than `most_bytes`: nobody would read it again.
[[nodiscard]] std::string format_index(const std::string& node_file, const FileIndex& index,
                                       index_t most_bytes = kManifestMostBytes);

/// Whose boxes are wanted; empty: everybody's.
using TensorNames = std::set<std::string>;

/// The index of file number `file` of `manifest`, a checkpoint in `folder`. Error(io) that names it
/// when it is not the one that the manifest means, or leads outside of a file or a tensor.
[[nodiscard]] FileIndex read_index(const std::string& folder, const Manifest& manifest,
                                   index_t file, const TensorNames& names = {});

/// An index for those who want some tensors after others: it is read and checked whole once, and
/// later only the lines of what is wanted are. Error(io) as read_index.
class IndexLines {
 public:
  /// `manifest` must outlive it.
  IndexLines(const std::string& folder, const Manifest& manifest, index_t file);
  /// Of those of `names` that this file has.
  [[nodiscard]] FileIndex read(const TensorNames& names) const;

 private:
  struct Line {
    std::string name;
    index_t begin = 0, end = 0;  // bytes in the file, without comma
  };
  const Manifest& manifest_;
  index_t file_;
  std::string path_;
  std::vector<Line> lines_;  // in the order of the file
};

}  // namespace t3d
