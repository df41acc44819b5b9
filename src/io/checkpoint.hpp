// Checkpoint: a directory per step that any mesh can write and any other can read.
//
//   DIR/step-00001200/
//     node-00000.h5   contiguous datasets, one per (tensor, box) of a group of ranks; CRC32C per block
//     master.h5       virtual datasets: every tensor whole, under its usual name
//     MANIFEST.json   written last (fsync, rename): a directory without a valid one does not exist
//
// A tensor is cut into boxes of its global index space, wherever they live. Loading intersects the
// boxes wanted with the boxes stored: no mesh is known here.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/dtype.hpp"
#include "core/types.hpp"

namespace t3d {

/// Rows [row0, row0+rows) x columns [col0, col0+cols) of a global matrix, stored row-major and
/// contiguous at element `offset` of the local buffer.
struct TensorBox {
  index_t row0 = 0, col0 = 0, rows = 0, cols = 0, offset = 0;
  friend bool operator==(const TensorBox&, const TensorBox&) = default;
};

/// One rank's pieces of one global tensor. Over all ranks that pass `write`, the boxes cover every
/// element exactly once (checked at save). A 1-D tensor is [1, n] with `vector` set.
struct TensorPart {
  std::string name;  // "blocks.3.attn.qkv.weight", "optimizer/m/blocks.3.attn.qkv.weight"
  DType dtype = DType::f32;
  index_t rows = 0, cols = 0;
  bool vector = false;
  void* data = nullptr;  // host memory
  std::vector<TensorBox> boxes;
};

/// Scalars and texts of the run's state.
struct CheckpointState {
  index_t step = 0;        // steps done
  std::string run_id;      // keys the CRCs
  std::map<std::string, std::string> texts;  // "input" (resolved toml), "mesh", "samples", ...
};

struct CheckpointOptions {
  std::string dir;             // the checkpoint folder of the run
  index_t ranks_per_file = 0;  // 0 = the ranks of a node
  index_t keep = 2, major_every = 0;
  bool verify = true;          // re-read what was written and compare its CRCs before publishing
};

struct CheckpointInfo {
  std::string path;  // DIR/step-...
  CheckpointState state;
};

/// Collective over `world`. Ranks with `write` = false (other replicas) pass parts too but store
/// nothing. Publishes DIR/step-%08d, then deletes what retention does not keep. On failure (disk
/// full, ...) removes its own partial directory and throws Error(io) on every rank; what was there
/// before stays. Returns the path.
std::string save_checkpoint(Communicator& world, const CheckpointOptions& options,
                            const CheckpointState& state, const std::vector<TensorPart>& parts,
                            bool write);

/// Collective. restart "auto": newest valid checkpoint in dir, passing over damaged ones (each
/// named with its fault through `warn`); nullopt when there is none. A damaged one is found by
/// reading every block that this job needs, so call load_checkpoint on the result.
std::optional<CheckpointInfo> find_checkpoint(
    Communicator& world, const std::string& dir,
    const std::function<void(const std::string&)>& warn);

/// Collective. Reads the header of one checkpoint directory (manifest verified). Error(io) if bad.
CheckpointInfo open_checkpoint(Communicator& world, const std::string& path);

/// Collective. Fills every box of `parts` from `path`, verifying the CRC of every block it touches.
/// Throws Error(io) on every rank if one rank finds a fault; the message names file and tensor.
/// A part may be named that the checkpoint does not have only if `optional_prefix` matches it.
void load_checkpoint(Communicator& world, const std::string& path, std::vector<TensorPart>& parts);

/// Names, shapes, dtypes, and the state: what `inspect` prints. Verifies everything when asked.
std::string describe_checkpoint(const std::string& path, bool verify);

}  // namespace t3d
