// What the writers of node files say to rank 0, which makes the manifest of it: files, tensors and
// ranges, never boxes. Two fragments become one on the way (a tree, comm/agree.hpp), and equal cuts
// are one, so that its size grows with the files. Internal to `io`.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "io/checkpoint/cover_sum.hpp"
#include "io/checkpoint/manifest.hpp"

namespace t3d {

struct FragmentTensor : ManifestTensor {
  CoverSum cover;  // of all boxes
};

struct Fragment {
  std::vector<ManifestFile> files;
  std::map<std::string, FragmentTensor> tensors;
  std::vector<Cut> cuts;
};

/// One file whose boxes these are; a tensor without boxes has a cut without ranges. Error(io) where
/// one lies outside its tensor.
[[nodiscard]] Fragment fragment_of(const std::map<std::string, StoredShape>& tensors,
                                   const FileIndex& index);

/// The files of `b` behind those of `a`. Error(io) when tensors disagree.
[[nodiscard]] Fragment join(const Fragment& a, const Fragment& b);
/// The same of texts for sending; "" has nothing in it.
[[nodiscard]] std::string join_texts(const std::string& a, const std::string& b);

[[nodiscard]] std::string text_of(const Fragment& fragment);
[[nodiscard]] Fragment parse_fragment(const std::string& text);

/// Error(io) unless every element of every tensor is there once.
void check_cover(const Fragment& fragment);
[[nodiscard]] double tensor_bytes(const Fragment& fragment);
[[nodiscard]] Manifest manifest_of(const CheckpointState& state, const Fragment& fragment);

}  // namespace t3d
