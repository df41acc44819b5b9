#include "io/checkpoint/checkpoint_state.hpp"

#include "io/checkpoint/checkpoint_files.hpp"

namespace t3d {

CheckpointState read_checkpoint_state(const std::string& path) {
  return parse_manifest(read_manifest_text(path), path + "/" + kManifestName).state;
}

}  // namespace t3d
