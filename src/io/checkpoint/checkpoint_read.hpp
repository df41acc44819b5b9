// Reading, shared by loading, finding and export. Internal to `io`.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "comm/communicator.hpp"
#include "io/checkpoint/file_index.hpp"
#include "io/checkpoint/manifest.hpp"

namespace t3d {

/// Rank 0 reads, all get it. Error(io) on every rank when it or a file's size is wrong.
[[nodiscard]] Manifest read_manifest(Communicator& all, const std::string& path);

/// Indexes that were read, for those who load tensor after tensor: of the tensors called `names`.
class IndexCache {
 public:
  /// `manifest` must outlive it.
  IndexCache(const Manifest& manifest, std::string folder, TensorNames names)
      : manifest_(manifest), folder_(std::move(folder)), names_(std::move(names)) {}
  [[nodiscard]] const FileIndex& of(index_t file);

 private:
  const Manifest& manifest_;
  std::string folder_;
  TensorNames names_;
  std::map<index_t, FileIndex> read_;
};

/// By one process, as load_checkpoint. The manifest is that of `path`; the names of a `cache` are
/// at least those of the parts.
void load_parts(const Manifest& manifest, const std::string& path,
                const std::vector<TensorPart>& parts, const std::string& optional_prefix = {},
                IndexCache* cache = nullptr);

/// load_checkpoint over a group that exists already, by a manifest that was read.
void load_from(Communicator& all, const Manifest& manifest, const std::string& path,
               const std::vector<TensorPart>& parts, const std::string& optional_prefix);

}  // namespace t3d
