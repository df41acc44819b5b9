// Manifests as they were before there were indexes: every box stood in MANIFEST.json, tensor by
// tensor. In memory they become what they would be with indexes.
#include <array>

#include "core/error.hpp"
#include "io/checkpoint/file_index.hpp"
#include "io/checkpoint/manifest_text.hpp"

namespace t3d {
namespace {

using Json = nlohmann::json;

void take_boxes(const Json& boxes, const std::string& name, const ManifestTensor& tensor,
                Manifest& manifest) {
  std::vector<Box> all;
  for (const Json& row : boxes) {
    if (row.size() != 7) throw_error(ExitCode::io, "a box has {} numbers", row.size());
    std::array<index_t, 7> n{};
    for (std::size_t at = 0; at < n.size(); ++at) n[at] = whole_number(row.at(at));
    if (n[0] >= std::ssize(manifest.files))
      throw_error(ExitCode::io, "{} lies in file number {}", name, n[0]);
    const auto file = static_cast<std::size_t>(n[0]);
    const ManifestPiece piece{{n[1], n[2], n[3], n[4]}, n[5], n[6]};
    check_place(name, size_of(tensor.dtype), {0, 0, tensor.rows, tensor.cols}, piece,
                manifest.files[file]);
    manifest.indexes[file][name].push_back(piece);
    all.push_back(piece.box);
  }
  const std::string fault = cover_fault(all, tensor.rows, tensor.cols);
  if (!fault.empty()) throw_error(ExitCode::io, "{}: {}", name, fault);
}

}  // namespace

Manifest manifest_of_version_1(const Json& json) {
  Manifest manifest = manifest_head(json);
  manifest.indexes.resize(manifest.files.size());
  for (auto& [name, tensor] : manifest.tensors) {
    take_boxes(json.at("tensors").at(name).at("boxes"), name, tensor, manifest);
    Cut cut;
    for (index_t file = 0; file < std::ssize(manifest.files); ++file) {
      const FileIndex& index = manifest.indexes[static_cast<std::size_t>(file)];
      const auto found = index.find(name);
      if (found != index.end()) cut.push_back(range_of(file, found->second));
    }
    tensor.cut = manifest.cuts.size();
    manifest.cuts.push_back(std::move(cut));
  }
  return manifest;
}

}  // namespace t3d
