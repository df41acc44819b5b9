// Reading, shared by loading, finding and export. Internal to `io`.
#pragma once
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "io/checkpoint/manifest.hpp"

namespace t3d {

/// Rank 0 reads, all get it. Error(io) on every rank when it or a file's size is wrong.
[[nodiscard]] Manifest read_manifest(Communicator& all, const std::string& path);

/// By one process, as load_checkpoint. The manifest is that of `path`.
void load_parts(const Manifest& manifest, const std::string& path,
                const std::vector<TensorPart>& parts, const std::string& optional_prefix = {});

/// load_checkpoint over a group that exists already, by a manifest that was read.
void load_from(Communicator& all, const Manifest& manifest, const std::string& path,
               const std::vector<TensorPart>& parts, const std::string& optional_prefix);

}  // namespace t3d
