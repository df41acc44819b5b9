// Checkpoint: a directory per step that any mesh can write and any other can read.
//
//   DIR/step-00001200/
//     node-00000.*.h5  contiguous datasets "<tensor>/<box>" of a group of ranks; CRC32C per block
//     master.h5        virtual datasets: every tensor whole, under its usual name
//     MANIFEST.json    what lies where
//   DIR/step-00001200.partial-*    being written or removed: no checkpoint
//
// The whole folder gets its name when everything in it is on the disk. A tensor is cut into boxes
// of its global index space, wherever they live. Loading intersects the boxes wanted with the boxes
// stored: no mesh is known here. Locks and lineages: docs/decisions/009-run-lock-and-lineage.md.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/box.hpp"
#include "core/dtype.hpp"
#include "core/types.hpp"

namespace t3d {

struct Lease;

/// One rank's pieces of one global tensor. Over all ranks that pass `write`, the boxes cover every
/// element exactly once (checked at save). A 1-D tensor is [1, n] with `vector` set.
struct TensorPart {
  std::string name;  // "blocks.3.attn.qkv.weight", "optimizer/m/blocks.3.attn.qkv.weight"
  DType dtype = DType::f32;
  index_t rows = 0, cols = 0;
  bool vector = false;
  void* data = nullptr;  // host memory
  std::vector<PlacedBox> boxes;
};

/// Of all boxes.
[[nodiscard]] inline index_t bytes_of(const std::vector<TensorPart>& parts) {
  index_t bytes = 0;
  for (const TensorPart& part : parts)
    for (const PlacedBox& place : part.boxes) bytes += place.box.count() * size_of(part.dtype);
  return bytes;
}

/// What one start from nothing, or from a chosen checkpoint, wrote. Lineages of a folder are
/// numbered in the order in which they began; what was written before there were any is number 0.
struct Lineage {
  index_t number = 0;
  std::string parent;       // name or path of the checkpoint that it began from; "" = from nothing
  std::string parent_run;   // its run id
  index_t parent_step = 0;  // its step
  index_t parent_lineage = -1;  // its lineage; -1 = not of this folder
  friend bool operator==(const Lineage&, const Lineage&) = default;
};

/// Scalars and texts of the run's state.
struct CheckpointState {
  index_t step = 0;                          // steps done
  std::string run_id;                        // keys the CRCs
  std::map<std::string, std::string> texts;  // "input" (resolved toml), "mesh", "samples", ...
  Lineage lineage{};
};

struct CheckpointOptions {
  std::string dir;             // the checkpoint folder of the run
  index_t ranks_per_file = 0;  // 0 = the ranks of a node
  index_t keep = 2, major_every = 0;
  bool verify = true;  // re-read what was written and compare its CRCs before publishing
  /// Of rank 0's lock. Looked at before anything is published or removed: Error(unavailable) when
  /// it is lost. Without one, no unfinished folder of others is removed.
  const Lease* lock = nullptr;
  /// What is not kept goes before save_checkpoint() returns; else the caller sees to that.
  bool retain = true;
};

/// Of the lineage of `state`, by the folders' names, removes what was read, found whole, and is
/// neither among the `keep` newest, nor a major one, nor `published`. With the lock, which is
/// looked at before each, partial folders go too, but for the one that `owner` is writing. Never
/// throws: what is left over goes next time. May run beside a save, in any thread.
void apply_retention(const CheckpointOptions& options, const CheckpointState& state,
                     const std::string& published, const std::string& owner) noexcept;

struct CheckpointInfo {
  std::string path;  // DIR/step-...
  CheckpointState state;
};

/// Collective over `world`. Ranks with `write` = false (other replicas) pass parts too but store
/// nothing. Publishes DIR/step-%08d, from lineage 1 on step-%08d.lineage-N (with .1, .2, ... behind
/// it when that name is taken: what is published is never written over), then deletes what
/// retention does not keep of this lineage. On failure (disk full, ...) removes its own partial
/// directory and throws Error(io) on every rank; what was there before stays. Returns the path.
std::string save_checkpoint(Communicator& world, const CheckpointOptions& options,
                            const CheckpointState& state, const std::vector<TensorPart>& parts,
                            bool write);

using Warn = std::function<void(const std::string&)>;  // called on rank 0 only; may be empty

/// Collective. restart "auto": in the newest lineage and those that it came from, the newest
/// checkpoint whose manifest and file sizes are right, passing over the others (each named with its
/// fault through `warn`, also folders without a manifest); nullopt when nothing was ever published
/// there. Error(io) when the folder or a checkpoint cannot be read, or when all that is there is
/// damaged: a run must not start over, or go back, by mistake. Damage inside the files shows when
/// they are read: see load_newest.
std::optional<CheckpointInfo> find_checkpoint(Communicator& world, const std::string& dir,
                                              const Warn& warn);

/// Collective. The lineage of a run that goes on in `dir` from `from` (nullopt: from nothing): that
/// of `from` when it is the newest checkpoint of the newest lineage, else the next one. Names
/// through `warn` the checkpoints that are of other lineages.
[[nodiscard]] Lineage next_lineage(Communicator& world, const std::string& dir,
                                   const std::optional<CheckpointInfo>& from, const Warn& warn);

/// Collective. Reads the header of one checkpoint directory (manifest verified). Error(io) if bad.
CheckpointInfo open_checkpoint(Communicator& world, const std::string& path);

/// Collective. Fills every box of `parts` from `path`, verifying the CRC of every block it touches.
/// Throws Error(io) on every rank if one rank finds damage; the message names file and data set.
/// Error(config) if the checkpoint is whole but lacks a tensor or has it in another shape or number
/// format; parts whose name starts with a non-empty `optional_prefix` may be lacking and then stay
/// untouched.
void load_checkpoint(Communicator& world, const std::string& path, std::vector<TensorPart>& parts,
                     const std::string& optional_prefix = {});

/// Collective. find and load in one: when the newest turns out damaged, names it with its fault
/// through `warn` and takes the next older. `parts_of` is called on all ranks for each that is
/// tried, and may communicate: what is read may depend on the checkpoint. Results as
/// find_checkpoint.
using PartsOf = std::function<std::vector<TensorPart>(const CheckpointInfo&)>;
std::optional<CheckpointInfo> load_newest(Communicator& world, const std::string& dir,
                                          const PartsOf& parts_of, const Warn& warn,
                                          const std::string& optional_prefix = {});

/// One process. Names, shapes, dtypes, and the state: what `inspect` prints. When asked, reads
/// every byte of every file first and throws Error(io) at the first fault.
std::string describe_checkpoint(const std::string& path, bool verify);

}  // namespace t3d
