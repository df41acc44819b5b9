// What the layers send, in integers: the pieces that step_traffic() adds up. Internal to `hetero`.
#pragma once
#include "core/dtype.hpp"
#include "hetero/traffic.hpp"

namespace t3d {

/// Size of part `part` of Partition::even(length, parts, unit), without making the partition.
[[nodiscard]] index_t even_size(index_t length, index_t parts, index_t part, index_t unit = 1);

/// The plan's numbers as one rank sees them.
struct RankView {
  RankView(const Plan& plan_, const Coord& coord_);

  const Plan& plan;
  const ReplicaPlan& cut;
  const ModelConfig& model;
  Coord coord;
  index_t p, q, r;
  index_t hidden, heads, kv, ffn, up, vocab;  // local widths; heads, kv: columns of all local groups
  index_t group_columns, group_heads;         // columns of one group: of q|k|v, of q
  DType activation, accumulator, reduce;      // reduce: of partial sums of activations
};

/// One micro-batch: the rows of this rank's slab, and those at rest on it.
struct Rows {
  Rows(const RankView& rank, index_t sequences);
  index_t slab = 0;    // rows of slab i, in tokens
  index_t over_j = 0;  // of them at rest here where j cuts them
  index_t over_k = 0;  // where k does
  index_t heads_over_k = 0;  // in whole sequences, as attention's side of a linear is cut
};

/// One side of a linear at rest on this rank.
struct Side {
  Group over;         // the axis whose members hold the other parts
  index_t members = 1;
  index_t own = 0, all = 0;  // elements here, and of all members
  bool panels = false;
};
/// The residual stream: rows cut over j.
[[nodiscard]] Side hidden_side(const RankView& rank, const Rows& rows);
[[nodiscard]] Side inner_side(const RankView& rank, const Rows& rows, index_t columns);
/// Attention's side: whole sequences or groups of heads over k.
[[nodiscard]] Side head_side(const RankView& rank, const Rows& rows, index_t columns_per_group);
/// Number format of sums over `summed`: over several panels they are kept in the accumulator's, like
/// sums over ranks.
[[nodiscard]] DType partial(const RankView& rank, const Side& summed);

/// Activations of all layers, forward; and backward beside it.
void add_forward(const RankView& rank, const Rows& rows, TrafficTable& traffic);
void add_backward(const RankView& rank, const Rows& rows, TrafficTable& traffic);
/// What recomputed blocks send once more.
void add_recomputation(const RankView& rank, const Rows& rows, TrafficTable& traffic);
/// The head without its backward pass; and that.
void add_head(const RankView& rank, const Rows& rows, bool training, TrafficTable& traffic);

/// The buckets of tensor3d/parameters.hpp by kind: how many are alike, and what of them is here.
struct BucketSize {
  index_t copies = 1;
  Group group = Group::i;
  bool matrices = true;
  index_t count = 0;    // elements of the gathered bucket
  index_t shard = 0;    // of them here
  index_t members = 1;  // of the group
  index_t entries = 1;
  index_t uses = 1;     // gathers per micro-batch of training where weights are not kept
  index_t evaluation_uses = 1;
};
[[nodiscard]] std::array<BucketSize, 8> bucket_sizes(const RankView& rank);

}  // namespace t3d
