#include "forecast/operator_calls.hpp"

#include <algorithm>
#include <map>

#include "hetero/cost/flops.hpp"
#include "hetero/cost/layer_traffic.hpp"
#include "hetero/cost/update_traffic.hpp"

namespace t3d {
namespace {

using CallShape = std::array<double, Sample::kMostColumns>;

class Calls {
 public:
  void add(OperatorKind kind, const CallShape& shape, double times) {
    if (times > 0) calls_[{kind, shape}] += times;
  }
  void matmul(index_t m, index_t n, index_t k, bool transpose_a, bool transpose_b, double times) {
    if (m == 0 || n == 0 || k == 0) return;
    add(OperatorKind::matmul,
        {static_cast<double>(m), static_cast<double>(n), static_cast<double>(k),
         transpose_a ? 1.0 : 0.0, transpose_b ? 1.0 : 0.0},
        times);
  }
  /// Bytes read and written.
  void stream(OperatorKind kind, double bytes, double times = 1) {
    if (bytes > 0) add(kind, {bytes}, times);
  }
  [[nodiscard]] std::vector<OperatorCall> list() const {
    std::vector<OperatorCall> all;
    for (const auto& [what, times] : calls_) all.push_back({what.first, what.second, times});
    return all;
  }

 private:
  std::map<std::pair<OperatorKind, CallShape>, double> calls_;
};

/// What the operators of one micro-batch read and write; `times` such micro-batches.
class MicroCalls {
 public:
  MicroCalls(const RankView& rank, index_t sequences, double times, Calls& calls)
      : rank_(rank),
        rows_(rank, sequences),
        shape_(rank.model, rank.cut),
        slab_(1, 1, rank.q, rank.r),  // panels lie over j and k

        forwards_(rank.plan.recompute == Recompute::block ? 2 : 1),
        layers_(static_cast<double>(rank.model.layers) * times),
        times_(times),
        act_(static_cast<double>(size_of(rank.activation))),
        calls_(calls) {}

  void add() {
    if (rows_.slab == 0) return;
    const LinearShape qkv = shape_.qkv(), proj = shape_.proj(), up = shape_.up(),
                      down = shape_.down();
    linear(0, qkv);
    linear(1, proj);
    linear(2, up);
    linear(3, down);
    attention();
    streams();
    head();
  }

 private:
  void linear(std::size_t kind, const LinearShape& linear) {
    const auto frozen = static_cast<double>(rank_.frozen.count(kind));
    const double trained = layers_ - frozen * times_;
    const std::vector<Panel> out = linear.out_panels(slab_, rank_.coord),
                             in = linear.in_panels(slab_, rank_.coord);
    for (const Panel& to : out)
      for (const Panel& from : in) {
        calls_.matmul(rows_.slab, to.count, from.count, false, true, layers_ * forwards_);
        calls_.matmul(rows_.slab, from.count, to.count, false, false, layers_);
        calls_.matmul(to.count, from.count, rows_.slab, true, false, trained);
      }
    const std::vector<index_t> adapted = adapted_segments(rank_.model, kBlockLinears[kind]);
    const index_t low = rank_.model.lora.rank;
    if (adapted.empty()) return;
    for (const Panel& from : in) adapter_a(low * std::ssize(adapted), from.count);
    for (const Panel& to : out)
      for (const index_t segment : adapted)
        adapter_b(low, to.count / linear.out.columns_per_group() *
                           linear.out.segments[static_cast<std::size_t>(segment)]);
  }

  /// x A: forward, and once more for B's gradient; then the input's gradient and A's.
  void adapter_a(index_t low, index_t width) {
    calls_.matmul(rows_.slab, low, width, false, true, layers_ * (forwards_ + 1));
    calls_.matmul(rows_.slab, width, low, false, false, layers_);
    calls_.matmul(low, width, rows_.slab, true, false, layers_);
  }
  /// Of one part of the output.
  void adapter_b(index_t low, index_t width) {
    calls_.matmul(rows_.slab, width, low, false, true, layers_ * forwards_);
    calls_.matmul(rows_.slab, low, width, false, false, layers_);
    calls_.matmul(width, low, rows_.slab, true, false, layers_);
  }

  void attention() {
    const Side side = head_side(rank_, rows_, 1);  // one column for each group here
    const index_t length = rank_.model.context, groups = rank_.cut.groups.size(rank_.coord.j);
    index_t sequences = 0, own_groups = groups;
    if (side.panels) {
      sequences = rows_.slab / length;
      own_groups = rows_.slab == 0 ? 0 : side.own() / rows_.slab;
    } else {
      sequences = rows_.heads_over_k / length;
    }
    if (sequences == 0 || own_groups == 0) return;
    const CallShape shape{static_cast<double>(sequences), static_cast<double>(length),
                          static_cast<double>(own_groups * rank_.group_heads),
                          static_cast<double>(own_groups),
                          static_cast<double>(rank_.model.head_size())};
    calls_.add(OperatorKind::attention_forward, shape, layers_ * forwards_);
    calls_.add(OperatorKind::attention_backward, shape, layers_);
    if (rank_.model.position != Position::rope) return;
    // Queries and keys are read, turned and written, forward and back.
    const double turned = static_cast<double>(sequences * length * own_groups *
                                              (rank_.group_heads + 1) * rank_.model.head_size());
    calls_.stream(OperatorKind::activation, 2 * turned * act_, layers_ * (forwards_ + 1));
  }

  void streams() {
    const ModelConfig& m = rank_.model;
    const double residual = static_cast<double>(hidden_side(rank_, rows_).own()) * act_;
    const double up = static_cast<double>(inner_side(rank_, rows_, rank_.up).own()) * act_,
                 ffn = static_cast<double>(inner_side(rank_, rows_, rank_.ffn).own()) * act_;
    constexpr double kForward = 2.0 / 8;  // of a norm's passes over its input
    const double norms = 2 + 2 * kForward * (forwards_ - 1);
    calls_.stream(OperatorKind::norm, 8 * residual, layers_ * norms + times_);
    // The first residual is added inside a norm where the hidden dimension is whole.
    const double adds = (rank_.r == 1 ? 1 : 2) * forwards_ + (forwards_ > 1 ? 2.0 / 3 : 0);
    calls_.stream(OperatorKind::residual, 3 * residual, layers_ * adds);
    calls_.stream(OperatorKind::activation, forwards_ * (up + ffn) + 2 * up + ffn, layers_);
    if (m.dropout > 0)
      calls_.stream(OperatorKind::residual, 2 * residual, layers_ * (2 * forwards_ + 4));
    if (m.qk_norm) {
      const index_t columns = (rank_.group_heads + 1) * m.head_size();
      const double heads = static_cast<double>(head_side(rank_, rows_, columns).own()) * act_;
      calls_.stream(OperatorKind::norm, (6 * forwards_ + 9) * heads, layers_);
    }
    if (!rank_.frozen.inner_vectors) {
      const double qkv =
          static_cast<double>(head_side(rank_, rows_, rank_.group_columns).own()) * act_;
      if (m.qkv_bias()) calls_.stream(OperatorKind::residual, qkv, layers_);
      if (m.mlp_bias()) calls_.stream(OperatorKind::residual, up, layers_);
    }
    if (!rank_.frozen.hidden_vectors)
      calls_.stream(OperatorKind::residual, residual,
                    layers_ * ((m.proj_bias() ? 1 : 0) + (m.mlp_bias() ? 1 : 0)));
    const double rows = static_cast<double>(rows_.slab * rank_.hidden) * act_;
    calls_.stream(OperatorKind::embedding, 5 * rows, times_ * (rank_.frozen.table ? 0.4 : 1));
  }

  void head() {
    const HeadChunks chunks(rank_, rows_);
    const bool frozen = rank_.model.tied_embeddings ? rank_.frozen.table : rank_.frozen.head;
    for (index_t chunk = 0; chunk < chunks.count; ++chunk) {
      const index_t rows = even_size(rows_.slab, chunks.count, chunk);
      calls_.matmul(rows, chunks.slice, rank_.model.hidden, false, true, times_);
      calls_.matmul(rows, rank_.model.hidden, chunks.slice, false, false, times_);
      if (!frozen) calls_.matmul(chunks.slice, rank_.model.hidden, rows, true, false, times_);
      calls_.stream(OperatorKind::loss, 3 * static_cast<double>(rows * chunks.slice) * act_,
                    times_);
    }
    if (rank_.r == 1) return;
    // Columns of the members of k are put together and taken apart.
    const double whole = static_cast<double>(rows_.slab * rank_.model.hidden) * act_;
    calls_.stream(OperatorKind::residual, 2 * whole, 2 * times_);
  }

  const RankView& rank_;
  Rows rows_;
  ModelShape shape_;
  MeshShape slab_;
  double forwards_, layers_, times_, act_;
  Calls& calls_;
};

/// Mean and sum look at every gradient once more on its way out, for the noise scale. (Adasum's
/// own sums have it.)
bool measures_noise(const Plan& plan) {
  return plan.aggregate.method != AggregateMethod::adasum && plan.replicas.size() > 1;
}

/// The optimizer, what clipping and the noise scale read, and copies of the weights in the
/// activations' type.
void add_update(const RankView& rank, index_t micros, Calls& calls) {
  const double acc = static_cast<double>(size_of(rank.accumulator)),
               act = static_cast<double>(size_of(rank.activation));
  const double looks = measures_noise(rank.plan) ? 2 : 1;
  const double updates =
      rank.plan.updates_locally() ? static_cast<double>(rank.plan.leaves_per_replica()) : 1;
  for (const BucketSize& size : bucket_sizes(rank)) {
    const auto shard = static_cast<double>(size.shard), trained = static_cast<double>(size.trained);
    calls.stream(OperatorKind::optimizer,
                 shard * acc * static_cast<double>(optimizer_numbers(rank.plan.optimizer)),
                 trained * updates);
    calls.stream(OperatorKind::residual, shard * acc, trained * looks);
    const bool cast = size.matrices && rank.activation != rank.accumulator;
    const index_t gathers = rank.plan.keep_weights ? 1 : size.uses * micros;
    if (cast)
      calls.stream(OperatorKind::residual, shard * (acc + act),
                   static_cast<double>(size.copies * gathers));
  }
  if (rank.plan.optimizer != OptimizerKind::muon) return;
  const std::vector<HiddenMatrix> matrices = hidden_matrices(rank.model);
  const MatrixOwners& owners = rank.memo->owners(rank.model, rank.cut);
  for (const index_t number : owners.owned[static_cast<std::size_t>(rank.number_in_cuboid())]) {
    const auto& [rows, cols] = matrices[static_cast<std::size_t>(number)];
    calls.add(OperatorKind::whole, {static_cast<double>(rows), static_cast<double>(cols)}, updates);
  }
}

}  // namespace

std::vector<OperatorCall> step_calls(const Plan& plan, const Coord& coord,
                                     const CostMemoPtr& memo) {
  const RankView rank(plan, coord, memo);
  std::map<index_t, index_t> sizes;  // how often by sequences
  index_t micros = 0;
  for (const auto& leaf : rank.cut.leaves)
    for (const index_t sequences : leaf) {
      ++sizes[sequences];
      ++micros;
    }
  Calls calls;
  for (const auto& [sequences, times] : sizes)
    MicroCalls(rank, sequences, static_cast<double>(times), calls).add();
  add_update(rank, micros, calls);
  return calls.list();
}

}  // namespace t3d
