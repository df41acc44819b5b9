// Products of blocks and head, attention, and whole matrices, as layers and optimizers call them.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "hetero/cost/layer_memory.hpp"
#include "hetero/cost/update_traffic.hpp"
#include "hetero/speed/probe_pieces.hpp"
#include "tensor3d/linear_products.hpp"
#include "tensor3d/logits_width.hpp"

namespace t3d {
namespace {

/// Of one linear, as Linear3d has them between its messages.
struct LinearBuffers {
  LinearProducts products;
  Tensor x, weight, bias, y, dy, dx, dweight;
};

}  // namespace

PieceSet ProbeShape::matmul(double scale) const {
  const Rows rows = scaled_rows(scale);
  const double actual = static_cast<double>(rows.slab) / static_cast<double>(slab_.most);
  return {{block_products(rows), head_products(rows)}, scaled_work(WorkClass::matmul, actual)};
}

Piece ProbeShape::block_products(const Rows& rows) const {
  auto linears = std::make_shared<std::vector<LinearBuffers>>();
  const ModelConfig& model = rank_.model;
  for (const auto& [linear, bias] : {std::pair{shape_.qkv(), model.qkv_bias()},
                                     {shape_.proj(), model.proj_bias()},
                                     {shape_.up(), model.mlp_bias()},
                                     {shape_.down(), model.mlp_bias()}}) {
    const index_t out = linear.out.columns_partition().size(rank_.coord.at(linear.out_axis));
    const index_t in = linear.in.columns_partition().size(rank_.coord.at(linear.in_axis));
    LinearBuffers made{LinearProducts(linear, mesh_, rank_.coord), {}, {}, {}, {}, {}, {}, {}};
    const auto partial = [&](const std::vector<Panel>& summed) {
      return summed.size() > 1 ? rank_.accumulator : rank_.reduce;
    };
    made.x = numbers(rank_.activation, 1, rows.slab * in);
    made.dy = numbers(rank_.activation, 1, rows.slab * out);
    made.weight = numbers(rank_.activation, out, in);
    made.y = numbers(partial(made.products.in), 1, rows.slab * out);
    made.dx = numbers(partial(made.products.out), 1, rows.slab * in);
    made.dweight = numbers(rank_.accumulator, out, in);
    if (bias && rank_.coord.at(linear.in_axis) == 0) made.bias = numbers(rank_.accumulator, 1, out);
    linears->push_back(std::move(made));
  }
  const bool accumulate = slab_.micros > 1;
  return {static_cast<double>(model.layers) * slab_.micros,
          [=, this, slab = rows.slab, &ops = machine_.ops, &queue = machine_.queue] {
            for (const LinearBuffers& own : *linears) {
              for (int pass = 0; pass < forwards_; ++pass)
                own.products.forward(ops, queue, own.x, own.weight, own.bias, own.y, slab);
              own.products.input_gradient(ops, queue, own.dy, own.weight, own.dx, slab);
              own.products.weight_gradient(ops, queue, own.dy, own.x, own.dweight, accumulate,
                                           slab);
            }
          }};
}

// Making so large a table would take longer than the measurement.
std::pair<index_t, double> ProbeShape::vocab_slice() const {
  constexpr index_t kMost = index_t{1} << 15;
  const index_t all = even_size(rank_.vocab, rank_.r, rank_.coord.k), part = std::min(all, kMost);
  return {part, part > 0 ? static_cast<double>(all) / static_cast<double>(part) : 0};
}

// As HeadLoss cuts its rows: by the widest slice.
index_t ProbeShape::chunk_rows(const Rows& rows) const {
  index_t widest = 1;
  for (index_t j = 0; j < rank_.q; ++j)
    widest = std::max(widest, (rank_.cut.vocab.size(j) + rank_.r - 1) / rank_.r);
  const index_t bytes = rows.slab * widest * size_of(rank_.activation);
  const index_t parts = (bytes + rank_.plan.logits_bytes - 1) / rank_.plan.logits_bytes;
  return (rows.slab + parts - 1) / std::max<index_t>(1, parts);
}

Piece ProbeShape::head_products(const Rows& rows) const {
  const index_t chunk = chunk_rows(rows), hidden = rank_.model.hidden;
  const auto [slice, slices] = vocab_slice();
  const index_t width = logits_width(slice);
  struct Buffers {
    Tensor h, weight, logits, dh, dweight;
  };
  const auto own = std::make_shared<Buffers>(
      Buffers{numbers(rank_.activation, chunk, hidden), numbers(rank_.activation, slice, hidden),
              numbers(rank_.activation, chunk, width), numbers(rank_.reduce, chunk, hidden),
              numbers(rank_.accumulator, slice, hidden)});
  const double calls = slab_.micros * static_cast<double>(rows.slab) / static_cast<double>(chunk);
  const bool accumulate = calls > 1;
  return {slices * calls, [=, this, columns = slice] {
            GemmArgs forward;
            forward.a = own->h;
            forward.b = own->weight;
            forward.c = own->logits.view().col_range(0, columns);
            forward.transpose_b = true;
            machine_.ops.gemm(machine_.queue, forward);
            GemmArgs dh;
            dh.a = forward.c;
            dh.b = own->weight;
            dh.c = own->dh;
            machine_.ops.gemm(machine_.queue, dh);
            GemmArgs dweight;
            dweight.a = forward.c;
            dweight.b = own->h;
            dweight.c = own->dweight;
            dweight.transpose_a = true;
            dweight.accumulate = accumulate;
            machine_.ops.gemm(machine_.queue, dweight);
          }};
}

// Below one sequence with all heads here: fewer heads.
PieceSet ProbeShape::attention(double scale) const {
  const index_t length = rank_.model.context, size = rank_.model.head_size();
  const index_t all_units = attending_.most / (length * rank_.group_columns);
  const Side side = head_side(rank_, Rows(rank_, attending_.sequences), rank_.group_columns);
  const index_t all_groups =
      side.panels ? side.own() / side.width : rank_.cut.groups.size(rank_.coord.j);
  const index_t units = std::max<index_t>(1, std::llround(scale * static_cast<double>(all_units)));
  const index_t groups = std::min(units, all_groups);
  const index_t sequences = (units + groups / 2) / groups;
  const index_t count = sequences * length, heads = groups * rank_.group_heads;

  struct Buffers {
    Tensor qkv, out, lse, dout, dqkv;
  };
  const auto own = std::make_shared<Buffers>(Buffers{
      numbers(rank_.activation, count, groups * rank_.group_columns),
      numbers(rank_.activation, count, heads * size), numbers(rank_.accumulator, count, heads),
      numbers(rank_.activation, count, heads * size),
      numbers(rank_.activation, count, groups * rank_.group_columns)});
  AttentionArgs args;
  args.qkv = own->qkv;
  args.sequences = sequences;
  args.length = length;
  args.heads = heads;
  args.kv_heads = groups;
  args.head_size = size;
  const bool rotated = rank_.model.position == Position::rope;
  const auto rotate = [=, this](const Tensor& x, bool inverse) {
    if (rotated)
      machine_.ops.rope(machine_.queue, {x.view().col_range(0, (heads + groups) * size), length,
                                         size, rope_frequencies(rank_.model.rope, size), inverse});
  };
  const auto run = [=, this] {
    for (int pass = 0; pass < forwards_; ++pass) {
      rotate(own->qkv, false);
      machine_.ops.attention_forward(machine_.queue, args, own->out, own->lse);
    }
    machine_.ops.attention_backward(machine_.queue, args, own->out, own->lse, own->dout, own->dqkv);
    rotate(own->dqkv, true);
  };
  const double actual = static_cast<double>(sequences * groups) / static_cast<double>(all_units);
  return {{{static_cast<double>(rank_.model.layers) * attending_.micros, run}},
          scaled_work(WorkClass::attention, actual)};
}

// The matrices that this rank owns, by shape.
PieceSet ProbeShape::whole(double scale) const {
  const std::vector<HiddenMatrix> matrices = hidden_matrices(rank_.model);
  const MatrixOwners owners = muon_owners(matrices, rank_.cut);
  std::map<std::pair<index_t, index_t>, double> shapes;
  for (const index_t number : owners.owned[static_cast<std::size_t>(rank_.number_in_cuboid())]) {
    const auto& [rows, cols] = matrices[static_cast<std::size_t>(number)];
    ++shapes[{rows, cols}];
  }
  const index_t leaves = rank_.plan.leaves_per_replica();
  const double updates = rank_.plan.updates_locally() ? static_cast<double>(leaves) : 1;
  const double side = std::cbrt(scale);  // flops are those of three factors
  const auto scaled = [&](index_t extent) {
    return std::max<index_t>(1, std::llround(side * static_cast<double>(extent)));
  };
  PieceSet set;
  for (const auto& [shape, count] : shapes) {
    const index_t rows = scaled(shape.first), cols = scaled(shape.second);
    const auto own = std::make_shared<Tensor>(numbers(rank_.accumulator, rows, cols));
    set.pieces.push_back(
        {updates * count, [=, this] { machine_.orthogonalise(*own, kNewtonSchulzSteps); }});
    set.work += updates * count * newton_schulz_flops(rows, cols, kNewtonSchulzSteps);
  }
  return set;
}

}  // namespace t3d
