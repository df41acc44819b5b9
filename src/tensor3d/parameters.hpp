// The parameters of a model as pure arithmetic: which buckets there are, what each rank holds of
// every global tensor, computed for any rank without asking it. Layers build their buckets from
// this table; costs, checkpoints and the router read it.
//
//   linear weight of rank (i,j,k): rows of W[N_j x K_k], shared flat and evenly over axis i
//   vectors over the hidden slice k (norms, positions, biases): shared over plane (i,j)
//   vectors over the slice j (biases of qkv and up): shared over plane (i,k)
//   vectors of every head (its norms of queries and keys): shared over the cuboid
//   adapters of a linear (LoRA): A [parts * rank, K_c] over the side of its input, B [rows of the
//   adapted parts of N_o, rank] over that of its output, shared like the vectors over that slice
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/box.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {

struct ParamInit {
  enum class Kind { normal, ones, zeros };
  Kind kind = Kind::normal;
  double std = 0.02;
};

/// One named parameter in a bucket: local matrix [local_rows, local_cols] at `offset` of the
/// gathered bucket, made of row segments of the global [rows, cols] tensor stacked on each other.
struct ParamEntry {
  std::string name;
  index_t rows = 0, cols = 0;  // global
  bool vector = false;         // [n, 1] here, 1-D in files
  bool decay = false;          // weight decay applies
  ParamInit init;
  std::vector<Box> segments;  // local row segments, in local order
  index_t offset = 0;         // in the gathered bucket
  bool frozen = false;        // not trained (tensor3d/frozen.hpp)

  [[nodiscard]] index_t local_rows() const;
  [[nodiscard]] index_t local_cols() const { return segments.empty() ? 0 : segments.front().cols; }
  [[nodiscard]] index_t count() const { return local_rows() * local_cols(); }
};

inline constexpr std::string_view kAdapterA = ".lora_a", kAdapterB = ".lora_b";
// Names of the buckets that all blocks share; those of blocks are their matrices' without
// ".weight".
inline constexpr std::string_view kTableBucket = "wte", kHiddenVectors = "vectors over k",
                                  kInnerVectors = "vectors over j",
                                  kHeadVectors = "vectors of heads",
                                  kHiddenAdapters = "adapters over k",
                                  kInnerAdapters = "adapters over j", kHeadBucket = "head";

/// Parameters that a group of ranks needs together, as one rank of the group sees them: all members
/// gather the same elements, and each keeps a flat part of them, its shard.
struct BucketTable {
  std::string name;
  Group group = Group::i;  // i, ij, ik or cuboid
  bool matrices = true;    // gathered in the activations' type; vectors in the accumulator's
  std::vector<ParamEntry> entries;
  bool frozen = false;  // all entries are: neither gradients nor state
  index_t count = 0;    // elements of the gathered bucket
  Partition shards;     // of them, by member of the group
  index_t member = 0;   // this rank's number in the group

  BucketTable(std::string name_, Group group_, bool matrices_)
      : name(std::move(name_)), group(group_), matrices(matrices_) {}
  void add(ParamEntry entry);
  /// -1 where there is none.
  [[nodiscard]] int find(std::string_view entry) const;
  [[nodiscard]] index_t shard_count() const { return shards.size(member); }
  /// The entry's flat range [first, last) in this rank's shard.
  [[nodiscard]] std::pair<index_t, index_t> shard_range(const ParamEntry& entry) const;
  /// The entry's pieces in this rank's shard; offsets are within the shard.
  [[nodiscard]] std::vector<PlacedBox> shard_boxes(const ParamEntry& entry) const;
};

/// Shards begin at multiples of so many elements.
inline constexpr index_t kShardUnit = 16;
/// Fixes the shards of a bucket whose entries are complete; `storage`: relative sizes over axis i.
void cut_shards(BucketTable& bucket, const MeshShape& mesh, const Coord& coord,
                const Partition& storage);
/// The rule behind it, for whoever only counts: even shards (even_begin with kShardUnit) where this
/// is true, else uneven ones. `beside`: members of the group on each slab of axis i.
[[nodiscard]] bool stored_evenly(const Partition& storage);
[[nodiscard]] Partition uneven_shards(const std::string& name, index_t count,
                                      const Partition& storage, index_t beside);

/// All buckets of the rank at `coord` (mesh seen from its replica): wte, vectors over k, vectors
/// over j, with qk_norm those of heads, with [lora] adapters over k and over j, an untied head,
/// then four per block.
[[nodiscard]] std::vector<BucketTable> parameter_buckets(const ModelShape& shape,
                                                         const MeshShape& mesh, const Coord& coord);

/// Those of a model that is not cut.
[[nodiscard]] std::vector<BucketTable> whole_buckets(const ModelConfig& model);

/// Weight and bias of a linear; `bias` is left out by whoever has none.
[[nodiscard]] ParamEntry linear_weight(const std::string& name, const LinearShape& linear,
                                       const MeshShape& mesh, const Coord& coord, double init_std);
[[nodiscard]] ParamEntry linear_bias(const std::string& name, const LinearShape& linear,
                                     const MeshShape& mesh, const Coord& coord);

}  // namespace t3d
