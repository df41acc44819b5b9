// What the layers send, in integers: the pieces that step_traffic() adds up. Internal to `hetero`.
#pragma once
#include "core/dtype.hpp"
#include "hetero/cost/cost_memo.hpp"
#include "hetero/cost/traffic.hpp"
#include "tensor3d/model_shape.hpp"

namespace t3d {

/// The plan's numbers as one rank sees them.
struct RankView {
  /// Without a memo it makes one of its own.
  RankView(const Plan& plan_, const Coord& coord_, CostMemoPtr memo_ = nullptr);

  const Plan& plan;
  const ReplicaPlan& cut;
  const ModelConfig& model;
  Coord coord;
  index_t p, q, r;
  index_t hidden, heads, kv, ffn, up,
      vocab;                              // local widths; heads, kv: columns of all local groups
  index_t group_columns, group_heads;     // columns of one group: of q|k|v, of q
  DType activation, accumulator, reduce;  // reduce: of partial sums of activations
  CostMemoPtr memo;
  CostMemo::Shards& shards;  // of `cut`
  const FrozenBuckets& frozen;

  /// Backward needs the input of the linear: its weight is trained, or an adapter.
  [[nodiscard]] bool needs_input(index_t block, std::size_t kind) const {
    return !frozen.matrix(block, kind) || !adapted_segments(model, kBlockLinears[kind]).empty();
  }
  /// Blocks in which it does.
  [[nodiscard]] index_t inputs_needed(std::size_t kind) const;
  [[nodiscard]] int number_in_cuboid() const {
    return static_cast<int>((coord.i * q + coord.j) * r + coord.k);
  }
  // These count over all replicas or places: for messages only, so that a planner can ask for the
  // work of very many ranks.
  [[nodiscard]] int ranks() const;       // with a place
  [[nodiscard]] int number() const;      // of this one among them
  [[nodiscard]] int world_rank() const;  // among all of the job
};

/// One micro-batch: the rows of this rank's slab, and those at rest on it.
struct Rows {
  Rows(const RankView& rank, index_t sequences);
  index_t slab = 0;          // rows of slab i, in tokens
  index_t over_j = 0;        // of them at rest here where j cuts them
  index_t over_k = 0;        // where k does
  index_t heads_over_k = 0;  // in whole sequences, as attention's side of a linear is cut
};

/// One side of a linear at rest: `length` things of `width` elements, cut evenly over the members
/// of an axis.
struct Side {
  Group over;          // the axis
  int members = 1;     // of it
  int member = 0;      // this rank's number among them
  index_t length = 0;  // rows, or heads where the side lies in panels
  index_t unit = 1;
  index_t width = 0;
  bool panels = false;

  /// Elements of the members before `before`.
  [[nodiscard]] index_t begin(int before) const {
    return even_begin(length, members, before, unit) * width;
  }
  /// Elements here, and of all members.
  [[nodiscard]] index_t own() const { return begin(member + 1) - begin(member); }
  [[nodiscard]] index_t all() const { return length * width; }
};
/// The residual stream: rows cut over j.
[[nodiscard]] Side hidden_side(const RankView& rank, const Rows& rows);
[[nodiscard]] Side inner_side(const RankView& rank, const Rows& rows, index_t columns);
/// Attention's side: whole sequences or groups of heads over k.
[[nodiscard]] Side head_side(const RankView& rank, const Rows& rows, index_t columns_per_group);
/// Number format of sums over `summed`: over several panels they are kept in the accumulator's,
/// like sums over ranks.
[[nodiscard]] DType partial(const RankView& rank, const Side& summed);

/// How the head goes through a slab's rows: so many of its logits at a time as plan.logits_bytes
/// holds, of the widest slice of the replica.
struct HeadChunks {
  HeadChunks(const RankView& rank, const Rows& rows);
  index_t slice = 0;  // columns of the vocabulary here
  index_t count = 1;  // chunks, cut evenly
};

/// Activations of all layers, forward; and backward beside it.
void add_forward(const RankView& rank, const Rows& rows, TrafficTable& traffic);
void add_backward(const RankView& rank, const Rows& rows, TrafficTable& traffic);
/// What recomputed blocks send once more.
void add_recomputation(const RankView& rank, const Rows& rows, TrafficTable& traffic);
/// The head without its backward pass; and that.
void add_head(const RankView& rank, const Rows& rows, bool training, TrafficTable& traffic);

/// Elements of one block's adapters on a rank.
struct AdapterSizes {
  explicit AdapterSizes(const RankView& rank);
  index_t over_k = 0, over_j = 0;  // by the slice that they lie over
  index_t entries = 0;             // linears with an adapter
  struct Products {
    index_t a = 0, b = 0;  // of the two matrices
  };
  Products around_attention, feed_forward;
};

/// The buckets of tensor3d/parameters.hpp by kind: how many are alike, and what of them is here.
struct BucketSize {
  index_t copies = 1;
  Group group = Group::i;
  bool matrices = true;
  index_t count = 0;    // elements of the gathered bucket
  index_t shard = 0;    // of them here
  index_t gather = 0;   // bytes of one gather
  index_t members = 1;  // of the group
  index_t entries = 1;
  index_t uses = 1;  // gathers per micro-batch of training where weights are not kept
  index_t evaluation_uses = 1;
  index_t trained = 1;  // copies with gradients and state
};
/// Vectors and adapters that blocks share lie before the head, the matrices of a block at the end.
inline constexpr std::size_t kFirstShared = 1, kHeadKind = 6, kFirstMatrix = 7, kBlockMatrices = 4;
inline constexpr std::size_t kBucketKinds = kFirstMatrix + kBlockMatrices;
[[nodiscard]] std::array<BucketSize, kBucketKinds> bucket_sizes(const RankView& rank);

}  // namespace t3d
