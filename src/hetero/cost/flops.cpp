#include "hetero/cost/flops.hpp"

#include <map>

#include "hetero/cost/update_traffic.hpp"

namespace t3d {
namespace {

/// Work of one micro-batch with `sequences` samples, forward once and backward once.
class MicroWork {
 public:
  MicroWork(const RankView& rank, index_t sequences)
      : rank_(rank), rows_(rank, sequences), act_(size_of(rank.activation)) {}

  [[nodiscard]] StepWork sum() const {
    const index_t layers = rank_.model.layers;
    // Recomputed blocks go forward twice.
    const index_t forwards = rank_.plan.recompute == Recompute::block ? 2 : 1;
    const index_t slice = even_size(rank_.vocab, rank_.r, rank_.coord.k);
    const AdapterSizes adapters(rank_);
    const bool head_frozen = rank_.model.tied_embeddings ? rank_.frozen.table : rank_.frozen.head;
    StepWork work;
    work.around_attention = linear(0, forwards, rank_.heads + rank_.kv) +
                            linear(1, forwards, rank_.heads) +
                            layers * low_rank(adapters.around_attention, forwards);
    work.feed_forward = linear(2, forwards, rank_.up) + linear(3, forwards, rank_.ffn) +
                        layers * low_rank(adapters.feed_forward, forwards);
    work.matmul = work.around_attention + work.feed_forward +
                  (head_frozen ? 2 : 3) * 2 * rows_.slab * rank_.model.hidden * slice;
    work.attention = layers * (2 * forwards + 5) * attention_product();
    work.streamed =
        layers * (forwards * forward_bytes() + backward_bytes()) + 3 * head_bytes(slice);
    return work;
  }

 private:
  /// 2 M N K of all blocks' linears of a kind, between hidden and so many columns: forward, the
  /// input's gradient, and the weight's where it is trained.
  [[nodiscard]] index_t linear(std::size_t kind, index_t forwards, index_t columns) const {
    const index_t layers = rank_.model.layers;
    const index_t passes = layers * (forwards + 1) + layers - rank_.frozen.count(kind);
    return passes * 2 * rows_.slab * rank_.hidden * columns;
  }
  /// Adapters: A and B forward; backward B and A for the input, both gradients, and A once more.
  [[nodiscard]] index_t low_rank(const AdapterSizes::Products& of, index_t forwards) const {
    return 2 * rows_.slab * ((forwards + 3) * of.a + (forwards + 2) * of.b);
  }
  /// Of queries with keys: pairs of places of which half count.
  [[nodiscard]] index_t attention_product() const {
    const Side heads = head_side(rank_, rows_, rank_.group_heads * rank_.model.head_size());
    return heads.own() * rank_.model.context;  // 2 x rows x columns x context / 2
  }
  [[nodiscard]] index_t residual() const { return hidden_side(rank_, rows_).own() * act_; }
  [[nodiscard]] index_t inner(index_t columns) const {
    return inner_side(rank_, rows_, columns).own() * act_;
  }
  /// Queries and keys that are normed: copied out, normed and copied back.
  [[nodiscard]] index_t normed_heads() const {
    if (!rank_.model.qk_norm) return 0;
    const index_t columns = (rank_.group_heads + 1) * rank_.model.head_size();
    return head_side(rank_, rows_, columns).own() * act_;
  }
  // Each norm reads and writes the stream; the first residual is added in a norm, the second alone.
  [[nodiscard]] index_t forward_bytes() const {
    const index_t dropout = rank_.model.dropout > 0 ? 4 * residual() : 0;
    return (2 + 4 + 3) * residual() + inner(rank_.up) + inner(rank_.ffn) + dropout +
           6 * normed_heads();
  }
  [[nodiscard]] index_t backward_bytes() const {
    const index_t dropout = rank_.model.dropout > 0 ? 8 * residual() : 0;
    return 2 * 6 * residual() + 2 * inner(rank_.up) + inner(rank_.ffn) + dropout +
           9 * normed_heads();
  }
  /// Of one pass over the logits.
  [[nodiscard]] index_t head_bytes(index_t slice) const { return rows_.slab * slice * act_; }

  const RankView& rank_;
  Rows rows_;
  index_t act_;
};

void add_update_work(const RankView& rank, StepWork& work) {
  index_t at_rest = 0;
  for (const BucketSize& size : bucket_sizes(rank)) at_rest += size.trained * size.shard;
  const index_t leaves = rank.plan.leaves_per_replica();
  const index_t updates = rank.plan.updates_locally() ? leaves : 1;
  work.streamed +=
      at_rest * size_of(rank.accumulator) * updates * optimizer_numbers(rank.plan.optimizer);
  if (rank.plan.optimizer != OptimizerKind::muon) return;
  const std::vector<HiddenMatrix> matrices = hidden_matrices(rank.model);
  const MatrixOwners& owners = rank.memo->owners(rank.model, rank.cut);
  for (const index_t number : owners.owned[static_cast<std::size_t>(rank.number_in_cuboid())]) {
    const auto& [rows, cols] = matrices[static_cast<std::size_t>(number)];
    work.whole +=
        updates * static_cast<index_t>(newton_schulz_flops(rows, cols, kNewtonSchulzSteps));
  }
}

}  // namespace

index_t optimizer_numbers(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::sgd: return 5;    // weight and momentum twice, gradient
    case OptimizerKind::adamw: return 7;  // weight, m and v twice, gradient
    case OptimizerKind::lamb: return 13;  // direction, norms, step
    case OptimizerKind::muon: break;
  }
  return 9;
}

StepWork update_work(const Plan& plan, const Coord& coord) {
  StepWork work;
  add_update_work(RankView(plan, coord), work);
  return work;
}

StepWork step_work(const Plan& plan, const Coord& coord, const CostMemoPtr& memo) {
  const RankView rank(plan, coord, memo);
  std::map<index_t, index_t> micros;  // how often by size
  for (const auto& leaf : rank.cut.leaves)
    for (const index_t micro : leaf) ++micros[micro];
  StepWork work;
  for (const auto& [sequences, times] : micros) {
    const StepWork one = MicroWork(rank, sequences).sum();
    work.matmul += times * one.matmul;
    work.around_attention += times * one.around_attention;
    work.feed_forward += times * one.feed_forward;
    work.attention += times * one.attention;
    work.streamed += times * one.streamed;
  }
  add_update_work(rank, work);
  return work;
}

}  // namespace t3d
