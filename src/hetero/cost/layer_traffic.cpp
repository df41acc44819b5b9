#include "hetero/cost/layer_traffic.hpp"

#include <algorithm>

#include "comm/cost.hpp"
#include "tensor3d/parameters.hpp"

namespace t3d {
namespace {

index_t gather_bytes(const Side& side, DType dtype) {
  return all_gather_traffic(side.members, side.member, dtype,
                            [&](int before) { return side.begin(before); })
      .bytes;
}
index_t scatter_bytes(const Side& side, DType dtype) {
  return (side.all() - side.own()) * size_of(dtype);
}

/// The linears of a block as (input side, output side). The input lies over the output's axis.
template <class Visit>
void for_each_linear(const RankView& rank, const Rows& rows, Visit&& visit) {
  const Side hidden = hidden_side(rank, rows);
  const index_t size = rank.model.head_size();
  visit(hidden, head_side(rank, rows, rank.group_columns));       // qkv
  visit(head_side(rank, rows, rank.group_heads * size), hidden);  // proj
  visit(hidden, inner_side(rank, rows, rank.up));                 // up
  visit(inner_side(rank, rows, rank.ffn), hidden);                // down
}

void add_block_forward(const RankView& rank, const Rows& rows, TrafficTable& traffic) {
  for_each_linear(rank, rows, [&](const Side& in, const Side& out) {
    traffic.add(Verb::all_gather, in.over, gather_bytes(in, rank.activation));
    traffic.add(Verb::reduce_scatter, out.over, scatter_bytes(out, partial(rank, in)));
  });
}

index_t norm_forward_bytes(const RankView& rank, const Rows& rows) {
  return (rank.r - 1) * rows.over_j * 3 * size_of(rank.accumulator);
}

index_t norm_backward_bytes(const RankView& rank, const Rows& rows) {
  return all_reduce_bytes(rows.over_j * 2, static_cast<int>(rank.r), static_cast<int>(rank.coord.k),
                          rank.accumulator);
}

BucketSize bucket(const RankView& rank, index_t copies, Group group, bool matrices, index_t count,
                  index_t entries, index_t uses, index_t evaluation_uses) {
  BucketSize size{copies, group, matrices, count, 0, 0, 1, entries, uses, evaluation_uses};
  index_t beside = 1, at = 0;  // of the group's axes other than i
  if (group == Group::ij || group == Group::cuboid) beside = rank.q, at = rank.coord.j;
  if (group == Group::ik || group == Group::cuboid) {
    beside *= rank.r;
    at = at * rank.r + rank.coord.k;
  }
  size.members = rank.p * beside;
  const auto member = static_cast<int>(rank.coord.i * beside + at);
  const DType type = matrices ? rank.activation : rank.accumulator;
  const auto measure = [&](const auto& begin) {
    size.shard = begin(member + 1) - begin(member);
    size.gather = all_gather_traffic(static_cast<int>(size.members), member, type, begin).bytes;
  };
  if (rank.shards.even()) {
    measure([&](int before) { return even_begin(count, size.members, before, kShardUnit); });
    return size;
  }
  const Partition& shards = rank.shards.cut(count, beside);
  measure([&](int before) { return shards.offsets()[static_cast<std::size_t>(before)]; });
  return size;
}

/// Slots before those of replica d.
index_t slots_before(const Plan& plan, index_t d) {
  index_t slots = 0;
  for (index_t before = 0; before < d; ++before) {
    const auto& [p, q, r] = plan.replica(before).cuboid;
    slots += p * q * r;
  }
  return slots;
}

}  // namespace

Side hidden_side(const RankView& rank, const Rows& rows) {
  return {Group::j,   static_cast<int>(rank.q), static_cast<int>(rank.coord.j), rows.slab, 1,
          rank.hidden};
}

Side inner_side(const RankView& rank, const Rows& rows, index_t columns) {
  return {Group::k, static_cast<int>(rank.r), static_cast<int>(rank.coord.k), rows.slab, 1,
          columns};
}

Side head_side(const RankView& rank, const Rows& rows, index_t columns_per_group) {
  const index_t groups = rank.cut.groups.size(rank.coord.j);
  Side side = inner_side(rank, rows, groups * columns_per_group);
  side.unit = rank.model.context;
  if (rank.cut.attention == AttentionCut::sequences) return side;
  side.length = groups;
  side.unit = 1;
  side.width = rows.slab * columns_per_group;
  side.panels = true;
  return side;
}

DType partial(const RankView& rank, const Side& summed) {
  return summed.panels && summed.members > 1 ? rank.accumulator : rank.reduce;
}

RankView::RankView(const Plan& plan_, const Coord& coord_, CostMemoPtr memo_)
    : plan(plan_),
      cut(plan_.replica(coord_.d)),
      model(plan_.model),
      coord(coord_),
      p(cut.cuboid[0]),
      q(cut.cuboid[1]),
      r(cut.cuboid[2]),
      hidden(cut.hidden.size(coord.k)),
      ffn(cut.ffn.size(coord.j)),
      up(model.activation == Activation::swiglu ? 2 * ffn : ffn),
      vocab(cut.vocab.size(coord.j)),
      group_heads(model.heads / model.kv_heads),
      activation(plan_.activation()),
      accumulator(accumulator_of(activation)),
      reduce(plan_.reduce_in_fp32 ? accumulator : activation),
      memo(memo_ ? std::move(memo_) : std::make_shared<CostMemo>()),
      shards(memo->shards(cut.storage)),
      frozen(memo->frozen(model)) {
  const index_t groups = cut.groups.size(coord.j), size = model.head_size();
  group_columns = (group_heads + 2) * size;
  heads = groups * group_heads * size;
  kv = groups * 2 * size;
}

index_t RankView::inputs_needed(std::size_t kind) const {
  return adapted_segments(model, kBlockLinears[kind]).empty() ? model.layers - frozen.count(kind)
                                                              : model.layers;
}

int RankView::ranks() const {
  return static_cast<int>(slots_before(plan, std::ssize(plan.replicas)));
}

int RankView::world_rank() const {
  const auto slot = static_cast<std::size_t>(slots_before(plan, coord.d)) +
                    static_cast<std::size_t>(number_in_cuboid());
  return plan.place.empty() ? static_cast<int>(slot) : plan.place[slot];
}

int RankView::number() const {
  const int here = world_rank();
  if (plan.place.empty()) return here;
  return static_cast<int>(
      std::count_if(plan.place.begin(), plan.place.end(), [&](int other) { return other < here; }));
}

Rows::Rows(const RankView& rank, index_t sequences) {
  const index_t length = rank.model.context;
  index_t own = -1;  // sequences of the slab
  for (const Partition& cut : rank.cut.tokens)
    if (cut.length() == sequences) own = cut.size(rank.coord.i);
  if (own < 0) own = rank.cut.tokens_of(sequences).size(rank.coord.i);
  slab = own * length;
  over_j = even_size(slab, rank.q, rank.coord.j);
  over_k = even_size(slab, rank.r, rank.coord.k);
  heads_over_k = even_size(slab, rank.r, rank.coord.k, length);
}

HeadChunks::HeadChunks(const RankView& rank, const Rows& rows)
    : slice(even_size(rank.vocab, rank.r, rank.coord.k)) {
  index_t widest = 0;
  for (index_t j = 0; j < rank.q; ++j)
    widest = std::max(widest, even_size(rank.cut.vocab.size(j), rank.r, 0));
  const index_t bytes = rows.slab * widest * size_of(rank.activation),
                at_once = rank.plan.logits_bytes;
  count = std::max<index_t>(1, (bytes + at_once - 1) / at_once);
}

void add_forward(const RankView& rank, const Rows& rows, TrafficTable& traffic) {
  TrafficTable block;
  add_block_forward(rank, rows, block);
  traffic.add(block, rank.model.layers);
  traffic.add(Verb::all_gather, Group::k, norm_forward_bytes(rank, rows),
              2 * rank.model.layers + 1);
  traffic.add(Verb::reduce_scatter, Group::j,
              scatter_bytes(hidden_side(rank, rows), rank.activation));  // embedding
}

void add_backward(const RankView& rank, const Rows& rows, TrafficTable& traffic) {
  TrafficTable block;
  std::size_t kind = 0;
  for_each_linear(rank, rows, [&](const Side& in, const Side& out) {
    block.add(Verb::all_gather, out.over, gather_bytes(out, rank.activation));
    block.add(Verb::reduce_scatter, in.over, scatter_bytes(in, partial(rank, out)));
    if (!rank.plan.keep_inputs)
      traffic.add(Verb::all_gather, in.over, gather_bytes(in, rank.activation),
                  rank.inputs_needed(kind));
    ++kind;
  });
  traffic.add(block, rank.model.layers);
  traffic.add(Verb::all_reduce, Group::k, norm_backward_bytes(rank, rows),
              2 * rank.model.layers + 1);
  if (!rank.frozen.table)
    traffic.add(Verb::all_gather, Group::j,
                gather_bytes(hidden_side(rank, rows), rank.activation));  // embedding
  if (rank.plan.recompute == Recompute::block) add_recomputation(rank, rows, traffic);
}

void add_recomputation(const RankView& rank, const Rows& rows, TrafficTable& traffic) {
  TrafficTable block;
  add_block_forward(rank, rows, block);
  block.add(Verb::all_gather, Group::k, norm_forward_bytes(rank, rows), 2);
  traffic.add(block, rank.model.layers);
}

void add_head(const RankView& rank, const Rows& rows, bool training, TrafficTable& traffic) {
  const Side at_rest = hidden_side(rank, rows);
  const auto own = static_cast<int>(rank.coord.k);
  const index_t panels =
      all_gather_traffic(static_cast<int>(rank.r), own, rank.activation, [&](int before) {
        return rows.slab * rank.cut.hidden.offsets()[static_cast<std::size_t>(before)];
      }).bytes;
  const index_t slice = even_size(rank.vocab, rank.r, rank.coord.k);
  const index_t act = size_of(rank.activation), acc = size_of(rank.accumulator);
  traffic.add(Verb::all_gather, Group::j, gather_bytes(at_rest, rank.activation));
  traffic.add(Verb::all_gather, Group::k, panels);
  if (rank.r > 1) traffic.add(Verb::exchange, Group::k, (rank.vocab - slice) * rank.hidden * act);
  traffic.add(Verb::all_gather, Group::jk, 3 * rows.slab * (rank.q * rank.r - 1) * acc);
  if (!training) return;
  const bool head_frozen = rank.model.tied_embeddings ? rank.frozen.table : rank.frozen.head;
  if (rank.r > 1 && !head_frozen)
    traffic.add(Verb::exchange, Group::k, slice * (rank.model.hidden - rank.hidden) * acc);
  traffic.add(Verb::reduce_scatter, Group::k,
              rows.slab * (rank.model.hidden - rank.hidden) * size_of(rank.reduce));
  traffic.add(Verb::reduce_scatter, Group::j, scatter_bytes(at_rest, rank.reduce));
}

AdapterSizes::AdapterSizes(const RankView& rank) {
  const std::array<index_t, 3> heads{rank.heads, rank.kv / 2, rank.kv / 2};
  const index_t low = rank.model.lora.rank;
  for (const BlockLinear linear : kBlockLinears) {
    const std::vector<index_t> segments = adapted_segments(rank.model, linear);
    if (segments.empty()) continue;
    ++entries;
    const bool attention = linear == BlockLinear::qkv || linear == BlockLinear::proj;
    const index_t hidden_side = low * std::ssize(segments) * rank.hidden;
    index_t inner_side = 0;
    for (const index_t segment : segments)
      inner_side += low * (attention ? heads[static_cast<std::size_t>(segment)] : rank.ffn);
    over_k += hidden_side;
    over_j += inner_side;
    const bool from_hidden = linear == BlockLinear::qkv || linear == BlockLinear::up;
    Products& products = attention ? around_attention : feed_forward;
    products.a += from_hidden ? hidden_side : inner_side;
    products.b += from_hidden ? inner_side : hidden_side;
  }
}

// Vectors and adapters stay through a micro-batch; the token table serves the embedding and a tied
// head; a block's weights serve forward, backward and, recomputed, forward again.
std::array<BucketSize, kBucketKinds> bucket_sizes(const RankView& rank) {
  const ModelConfig& m = rank.model;
  const FrozenBuckets& frozen = rank.frozen;
  const index_t norm = m.norm_vectors(), qkv_bias = m.qkv_bias() ? 1 : 0,
                mlp_bias = m.mlp_bias() ? 1 : 0;
  const index_t hidden_bias = (m.proj_bias() ? 1 : 0) + mlp_bias;
  const bool learned = m.position == Position::learned;
  const index_t over_k =
      rank.hidden * ((learned ? m.context : 0) + norm + m.layers * (2 * norm + hidden_bias));
  const index_t over_j = m.layers * (qkv_bias * (rank.heads + rank.kv) + mlp_bias * rank.up);
  const index_t uses = rank.plan.recompute == Recompute::block ? 3 : 2;
  const index_t shared = m.tied_embeddings ? 2 : 1;
  const index_t adapted = m.lora.on() ? 1 : 0;
  const AdapterSizes adapters(rank);
  const auto sized = [&](bool is_frozen, BucketSize size) {
    size.trained = is_frozen ? 0 : size.copies;
    return size;
  };
  const auto matrix = [&](std::size_t kind, index_t count) {
    BucketSize size = bucket(rank, m.layers, Group::i, true, count, 1, uses, 1);
    size.trained = m.layers - frozen.count(kind);
    return size;
  };
  const auto adapter = [&](Group group, index_t count) {
    return sized(false, bucket(rank, adapted, group, true, m.layers * count,
                               m.layers * adapters.entries, 1, 1));
  };
  return {sized(frozen.table,
                bucket(rank, 1, Group::i, true, rank.vocab * rank.hidden, 1, shared, shared)),
          sized(frozen.hidden_vectors,
                bucket(rank, 1, Group::ij, false, over_k,
                       (learned ? 1 : 0) + norm + m.layers * (2 * norm + hidden_bias), 1, 1)),
          sized(frozen.inner_vectors,
                bucket(rank, 1, Group::ik, false, over_j, m.layers * (qkv_bias + mlp_bias), 1, 1)),
          sized(frozen.head_vectors, bucket(rank, m.qk_norm ? 1 : 0, Group::cuboid, false,
                                            m.layers * 2 * m.head_size(), m.layers * 2, 1, 1)),
          adapter(Group::ij, adapters.over_k),
          adapter(Group::ik, adapters.over_j),
          sized(frozen.head, bucket(rank, m.tied_embeddings ? 0 : 1, Group::i, true,
                                    rank.vocab * rank.hidden, 1, 1, 1)),
          matrix(0, (rank.heads + rank.kv) * rank.hidden),
          matrix(1, rank.heads * rank.hidden),
          matrix(2, rank.up * rank.hidden),
          matrix(3, rank.ffn * rank.hidden)};
}

}  // namespace t3d
