// What reads and writes memory once or twice: norms, activations, residuals, dropout, gradients of
// biases, loss, embedding, optimizer.
#include <algorithm>
#include <memory>

#include "hetero/speed/probe_numbers.hpp"
#include "hetero/speed/probe_pieces.hpp"

namespace t3d {
namespace {

/// A norm's operands, forward and backward.
struct NormBuffers {
  Tensor x, sum, y, dx, gamma, beta, dgamma, dbeta, stats, moments, sums;
};

index_t rows_of(const Side& side) { return side.width > 0 ? side.own() / side.width : 0; }

}  // namespace

PieceSet ProbeShape::streamed(double scale) const {
  const Rows rows = scaled_rows(scale);
  const double actual = static_cast<double>(rows.slab) / static_cast<double>(slab_.most);
  return {{block_streams(rows), head_streams(rows), embedding(rows), update()},
          scaled_work(WorkClass::streamed, actual)};
}

Piece ProbeShape::block_streams(const Rows& rows) const {
  const ModelConfig& model = rank_.model;
  const DType act = rank_.activation, acc = rank_.accumulator;
  const index_t hidden = rank_.hidden, over_j = rows_of(hidden_side(rank_, rows)),
                over_k = rows_of(inner_side(rank_, rows, 1)), r = rank_.r;
  const bool beta = model.norm_vectors() > 1;
  const auto norm_buffers = [&] {
    return NormBuffers{numbers(act, over_j, hidden), numbers(act, over_j, hidden),
                       numbers(act, over_j, hidden), numbers(act, over_j, hidden),
                       numbers(acc, 1, hidden),      beta ? numbers(acc, 1, hidden) : Tensor(),
                       numbers(acc, 1, hidden),      beta ? numbers(acc, 1, hidden) : Tensor(),
                       numbers(acc, r * over_j, 3),  numbers(acc, over_j, 2),
                       numbers(acc, over_j, 2)};
  };
  struct Buffers {
    NormBuffers norm1, norm2;
    Tensor up, active, dactive, dup, qkv, qkv_bias, hidden_bias, up_bias;
  };
  const index_t columns = rank_.heads + rank_.kv;
  const auto own = std::make_shared<Buffers>(
      Buffers{norm_buffers(), norm_buffers(), numbers(act, over_k, rank_.up),
              numbers(act, over_k, rank_.ffn), numbers(act, over_k, rank_.ffn),
              numbers(act, over_k, rank_.up), numbers(act, model.qkv_bias() ? over_k : 0, columns),
              numbers(acc, 1, columns), numbers(acc, 1, hidden), numbers(acc, 1, rank_.up)});
  Ops& ops = machine_.ops;
  Queue& queue = machine_.queue;

  const auto norm_forward = [=, this, &ops, &queue](const NormBuffers& n, bool adds) {
    const TensorView own_stats = n.stats.view().row_range(rank_.coord.k * over_j, over_j);
    const TensorView sum = adds ? n.sum.view() : TensorView();
    if (r == 1) {
      ops.norm_forward(queue, {model.norm, n.x, sum, n.gamma, n.beta, model.norm_eps, own_stats,
                               n.moments, n.y});
      return;
    }
    if (adds) ops.add(queue, n.x, sum);
    ops.norm_stats(queue, model.norm, adds ? ConstTensorView(sum) : ConstTensorView(n.x),
                   own_stats);
    ops.norm_merge(queue, model.norm, n.stats, r, model.norm_eps, n.moments);
    ops.norm_apply(queue, n.x, n.moments, n.gamma, n.beta, n.y);
  };
  const auto norm_backward = [=, this, &ops, &queue](const NormBuffers& n) {
    ops.norm_backward_stats(queue, n.y, n.x, n.moments, n.gamma, n.sums);
    ops.norm_backward_apply(queue, model.norm, n.y, n.x, n.moments, n.gamma, n.sums, model.hidden,
                            true, n.dx, n.dgamma, n.dbeta);
  };
  const auto drop = [=, &ops, &queue](const Tensor& x, bool copies) {
    if (model.dropout <= 0) return;
    if (copies) ops.copy(queue, own->norm1.dx, x);
    ops.dropout(queue, {x, {1, 2}, 0, 0, model.hidden, model.dropout});
  };
  return {static_cast<double>(model.layers) * slab_.micros, [=, this, &ops, &queue] {
            for (int pass = 0; pass < forwards_; ++pass) {
              norm_forward(own->norm1, false);
              drop(own->norm2.sum, false);
              norm_forward(own->norm2, true);
              ops.activation_forward(queue, model.activation, own->up, own->active);
              drop(own->norm1.sum, false);
              ops.add(queue, own->norm2.sum, own->norm1.sum);
            }
            if (forwards_ > 1) ops.copy(queue, own->norm1.x, own->norm1.sum);
            drop(own->norm1.sum, true);
            ops.activation_backward(queue, model.activation, own->up, own->dactive, own->dup);
            norm_backward(own->norm2);
            drop(own->norm1.sum, true);
            norm_backward(own->norm1);
            if (model.qkv_bias()) ops.column_sums(queue, own->qkv, own->qkv_bias);
            if (model.mlp_bias()) ops.column_sums(queue, own->dup, own->up_bias);
            for (const bool bias : {model.proj_bias(), model.mlp_bias()})
              if (bias) ops.column_sums(queue, own->norm1.dx, own->hidden_bias);
          }};
}

Piece ProbeShape::head_streams(const Rows& rows) const {
  const index_t chunk = chunk_rows(rows), parts = rank_.q * rank_.r;
  const auto [slice, slices] = vocab_slice();
  const index_t first =
      rank_.cut.vocab.begin(rank_.coord.j) + even_begin(rank_.vocab, rank_.r, rank_.coord.k);
  const index_t hidden = rank_.r > 1 ? rank_.model.hidden : 0;  // panels of k are put together
  struct Buffers {
    Tensor logits, targets, stats, lse, loss, sum, whole, panels;
  };
  const auto own = std::make_shared<Buffers>(
      Buffers{numbers(rank_.activation, chunk, slice), token_ids(chunk),
              numbers(rank_.accumulator, parts * chunk, 3), numbers(rank_.accumulator, 1, chunk),
              numbers(rank_.accumulator, 1, chunk), scalar(),
              numbers(rank_.activation, chunk, hidden), numbers(rank_.activation, chunk, hidden)});
  return {slices * slab_.micros * static_cast<double>(rows.slab) / static_cast<double>(chunk),
          [=, this, &ops = machine_.ops, &queue = machine_.queue] {
            ops.copy(queue, own->panels, own->whole);
            ops.xent_stats(queue, own->logits, own->targets, first,
                           own->stats.view().row_range(0, chunk));
            ops.xent_merge(queue, own->stats, parts, own->targets, own->lse, own->loss);
            ops.sum(queue, own->loss, own->sum);
            ops.xent_grad(queue, own->logits, own->targets, first, own->lse, 1.0);
            ops.copy(queue, own->whole, own->panels);
          }};
}

Piece ProbeShape::embedding(const Rows& rows) const {
  struct Buffers {
    Tensor ids, table, dtable, x;
  };
  const auto own = std::make_shared<Buffers>(
      Buffers{token_ids(rows.slab), numbers(rank_.activation, rank_.vocab, rank_.hidden),
              numbers(rank_.accumulator, rank_.vocab, rank_.hidden),
              numbers(rank_.activation, rows.slab, rank_.hidden)});
  const index_t first = rank_.cut.vocab.begin(rank_.coord.j);
  return {slab_.micros, [=, this] {
            machine_.ops.embed_gather(machine_.queue, own->ids, first, own->table, own->x);
            machine_.ops.embed_scatter_add(machine_.queue, own->ids, first, own->x, own->dtable);
          }};
}

// Squares of the gradient, the optimizer, and the copy in the activations' type. By the element,
// so a part of the weights stands for all.
Piece ProbeShape::update() const {
  constexpr index_t kMost = index_t{1} << 21;
  index_t at_rest = 0;
  for (const BucketSize& size : bucket_sizes(rank_)) at_rest += size.trained * size.shard;
  const index_t count = std::clamp<index_t>(at_rest, 1, kMost);
  struct Buffers {
    Tensor gradient, squares, copy;
  };
  const bool copies = rank_.activation != rank_.accumulator;
  const auto own =
      std::make_shared<Buffers>(Buffers{numbers(rank_.accumulator, 1, count), scalar(),
                                        numbers(rank_.activation, 1, copies ? count : 0)});
  const double leaves = static_cast<double>(rank_.plan.leaves_per_replica());
  const double updates = rank_.plan.updates_locally() ? leaves : 1;
  return {updates * static_cast<double>(at_rest) / static_cast<double>(count),
          [=, this, optimize = optimizer(count)] {
            machine_.ops.sum_squares(machine_.queue, own->gradient, own->squares);
            optimize();
            if (copies) machine_.ops.copy(machine_.queue, own->gradient, own->copy);
          }};
}

std::function<void()> ProbeShape::optimizer(index_t count) const {
  struct Buffers {
    Tensor weight, m, v, gradient, squares;
  };
  const auto own = std::make_shared<Buffers>(Buffers{
      numbers(rank_.accumulator, 1, count), numbers(rank_.accumulator, 1, count),
      numbers(rank_.accumulator, 1, count), numbers(rank_.accumulator, 1, count), scalar()});
  machine_.ops.fill(machine_.queue, own->v, 0.25);  // squares are not negative
  const AdamWArgs adam = probe_adamw(own->weight, own->m, own->v, own->gradient);
  Ops& ops = machine_.ops;
  Queue& queue = machine_.queue;
  switch (rank_.plan.optimizer) {
    case OptimizerKind::adamw:
      return [=, &ops, &queue] {
        (void)own;
        ops.adamw(queue, adam);
      };
    case OptimizerKind::sgd:
      return [=, &ops, &queue] {
        SgdArgs args;
        args.weight = own->weight;
        args.v = own->m;
        args.grad = own->gradient;
        args.momentum = 0.9;
        ops.sgd(queue, args);
      };
    case OptimizerKind::lamb:
      return [=, &ops, &queue] {
        const Segment all{0, count, 0};
        ops.adam_direction(queue, adam, own->gradient);
        ops.gram(queue, own->weight, {&all, 1}, own->squares);
        ops.gram(queue, own->gradient, {&all, 1}, own->squares);
        ops.axpby(queue, {-adam.lr, {}}, own->gradient, {1, {}}, own->weight);
      };
    case OptimizerKind::muon: break;
  }
  return [=, &ops, &queue] {  // around the orthogonalisation
    ops.axpby(queue, {0.05, {}}, own->gradient, {0.95, {}}, own->m);
    ops.axpby(queue, {0.95, {}}, own->m, {0.05, {}}, own->gradient);
    ops.axpby(queue, {0.1, {}}, own->weight, {0.2, {}}, own->gradient);
    ops.axpby(queue, {-adam.lr, {}}, own->gradient, {1, {}}, own->weight);
  };
}

}  // namespace t3d
