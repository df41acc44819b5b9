#include "forecast/calibrate/operator_run.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/plan.hpp"
#include "hetero/speed/probe_numbers.hpp"
#include "tensor3d/matrix_owners.hpp"

namespace t3d {
namespace {

constexpr index_t kMostStates = 64;  // of an optimizer: a step sees each once
constexpr index_t kMostSets = 8;     // of operands

index_t whole(double extent) { return static_cast<index_t>(extent); }

struct Maker {
  const ProbeMachine& machine;
  DType act, acc;

  [[nodiscard]] Tensor numbers(DType type, index_t rows, index_t cols) const {
    return probe_numbers(machine, type, rows, cols);
  }
  [[nodiscard]] std::function<void()> matmul(const OperatorShape& shape) const;
  [[nodiscard]] std::function<void()> attention(const OperatorShape& shape, bool backward) const;
  [[nodiscard]] std::function<void()> orthogonal(const OperatorShape& shape) const;
  [[nodiscard]] std::function<void()> norm(index_t elements) const;
  [[nodiscard]] std::function<void()> activation(index_t elements) const;
  [[nodiscard]] std::function<void()> residual(index_t elements) const;
  [[nodiscard]] std::function<void()> loss(index_t elements) const;
  [[nodiscard]] std::function<void()> embedding(index_t elements) const;
  [[nodiscard]] std::function<void()> optimizer(index_t elements) const;
};

// Gradients of weights are summed up in the accumulator's type.
std::function<void()> Maker::matmul(const OperatorShape& shape) const {
  const index_t m = whole(shape[0]), n = whole(shape[1]), k = whole(shape[2]);
  const bool transpose_a = shape[3] != 0, transpose_b = shape[4] != 0;
  struct Buffers {
    Tensor a, b, c;
  };
  const auto own =
      std::make_shared<Buffers>(Buffers{transpose_a ? numbers(act, k, m) : numbers(act, m, k),
                                        transpose_b ? numbers(act, n, k) : numbers(act, k, n),
                                        numbers(transpose_a ? acc : act, m, n)});
  return [=, &ops = machine.ops, &queue = machine.queue] {
    GemmArgs args;
    args.a = own->a;
    args.b = own->b;
    args.c = own->c;
    args.transpose_a = transpose_a;
    args.transpose_b = transpose_b;
    args.accumulate = transpose_a;
    ops.gemm(queue, args);
  };
}

std::function<void()> Maker::attention(const OperatorShape& shape, bool backward) const {
  AttentionArgs args;
  args.sequences = whole(shape[0]);
  args.length = whole(shape[1]);
  args.heads = whole(shape[2]);
  args.kv_heads = whole(shape[3]);
  args.head_size = whole(shape[4]);
  const index_t rows = args.sequences * args.length, columns = args.heads * args.head_size,
                all = columns + 2 * args.kv_heads * args.head_size;
  struct Buffers {
    Tensor qkv, out, lse, dout, dqkv;
  };
  const auto own = std::make_shared<Buffers>(
      Buffers{numbers(act, rows, all), numbers(act, rows, columns), numbers(acc, rows, args.heads),
              numbers(act, backward ? rows : 0, columns), numbers(act, backward ? rows : 0, all)});
  args.qkv = own->qkv;
  Ops& ops = machine.ops;
  Queue& queue = machine.queue;
  if (!backward)
    return [=, &ops, &queue] { ops.attention_forward(queue, args, own->out, own->lse); };
  return [=, &ops, &queue] {
    ops.attention_backward(queue, args, own->out, own->lse, own->dout, own->dqkv);
  };
}

std::function<void()> Maker::orthogonal(const OperatorShape& shape) const {
  const auto own = std::make_shared<Tensor>(numbers(acc, whole(shape[0]), whole(shape[1])));
  return [own, orthogonalise = machine.orthogonalise] { orthogonalise(*own, kNewtonSchulzSteps); };
}

constexpr index_t kWidth = kCalibratedWidth, kVocab = kCalibratedVocab;
struct Rows2d {
  explicit Rows2d(index_t elements)
      : cols(std::min(kWidth, std::max<index_t>(elements, 1))),
        rows(std::max<index_t>(1, elements / cols)) {}
  index_t cols, rows;
};

// Forward and backward: reads x, writes y; reads x, y and the stream's gradient, and writes that.
std::function<void()> Maker::norm(index_t elements) const {
  const Rows2d size(elements);
  struct Buffers {
    Tensor x, y, dx, gamma, beta, dgamma, dbeta, stats, moments, sums;
  };
  const auto vector = [&] { return numbers(acc, 1, size.cols); };
  const auto own = std::make_shared<Buffers>(
      Buffers{numbers(act, size.rows, size.cols), numbers(act, size.rows, size.cols),
              numbers(act, size.rows, size.cols), vector(), vector(), vector(), vector(),
              numbers(acc, size.rows, 3), numbers(acc, size.rows, 2), numbers(acc, size.rows, 2)});
  return [=, &ops = machine.ops, &queue = machine.queue] {
    constexpr double kEps = 1e-5;
    const NormKind kind = NormKind::layer;
    ops.norm_forward(
        queue, {kind, own->x, {}, own->gamma, own->beta, kEps, own->stats, own->moments, own->y});
    ops.norm_backward_stats(queue, own->y, own->x, own->moments, own->gamma, own->sums);
    ops.norm_backward_apply(queue, kind, own->y, own->x, own->moments, own->gamma, own->sums,
                            size.cols, true, own->dx, own->dgamma, own->dbeta);
  };
}

std::function<void()> Maker::activation(index_t elements) const {
  const Rows2d size(elements);
  struct Buffers {
    Tensor x, y, dy, dx;
  };
  const auto one = [&] { return numbers(act, size.rows, size.cols); };
  const auto own = std::make_shared<Buffers>(Buffers{one(), one(), one(), one()});
  return [=, &ops = machine.ops, &queue = machine.queue] {
    ops.activation_forward(queue, Activation::gelu_tanh, own->x, own->y);
    ops.activation_backward(queue, Activation::gelu_tanh, own->x, own->dy, own->dx);
  };
}

std::function<void()> Maker::residual(index_t elements) const {
  const Rows2d size(elements);
  struct Buffers {
    Tensor a, b;
  };
  const auto own = std::make_shared<Buffers>(
      Buffers{numbers(act, size.rows, size.cols), numbers(act, size.rows, size.cols)});
  machine.ops.fill(machine.queue, own->a, 1e-30);  // so that sums stay numbers
  return [=, &ops = machine.ops, &queue = machine.queue] { ops.add(queue, own->a, own->b); };
}

std::function<void()> Maker::loss(index_t elements) const {
  constexpr index_t kColumns = 4096;
  const index_t cols = std::min(kColumns, std::max<index_t>(elements, 1)),
                rows = std::max<index_t>(1, elements / cols);
  struct Buffers {
    Tensor logits, targets, stats, lse, loss;
  };
  const auto own = std::make_shared<Buffers>(
      Buffers{numbers(act, rows, cols), probe_ids(machine, rows, cols), numbers(acc, rows, 3),
              numbers(acc, 1, rows), numbers(acc, 1, rows)});
  return [=, &ops = machine.ops, &queue = machine.queue] {
    ops.xent_stats(queue, own->logits, own->targets, 0, own->stats);
    ops.xent_merge(queue, own->stats, 1, own->targets, own->lse, own->loss);
    ops.xent_grad(queue, own->logits, own->targets, 0, own->lse, 1.0);
  };
}

std::function<void()> Maker::embedding(index_t elements) const {
  const Rows2d size(elements);
  struct Buffers {
    Tensor ids, table, x, dtable;
  };
  const auto own = std::make_shared<Buffers>(
      Buffers{probe_ids(machine, size.rows, kVocab), numbers(act, kVocab, size.cols),
              numbers(act, size.rows, size.cols), numbers(acc, kVocab, size.cols)});
  return [=, &ops = machine.ops, &queue = machine.queue] {
    ops.embed_gather(queue, own->ids, 0, own->table, own->x);
    ops.embed_scatter_add(queue, own->ids, 0, own->x, own->dtable);
  };
}

std::function<void()> Maker::optimizer(index_t elements) const {
  struct Buffers {
    Tensor weight, m, v, gradient;
  };
  const auto one = [&] { return numbers(acc, 1, elements); };
  const auto own = std::make_shared<Buffers>(Buffers{one(), one(), one(), one()});
  machine.ops.fill(machine.queue, own->v, 0.25);  // squares are not negative
  const AdamWArgs args = probe_adamw(own->weight, own->m, own->v, own->gradient);
  return [=, &ops = machine.ops, &queue = machine.queue] {
    (void)own;
    ops.adamw(queue, args);
  };
}

/// Numbers read and written for each element of a stream (hetero/cost/flops.cpp).
double passes_of(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::norm: return 2 + 6;        // forward and backward
    case OperatorKind::activation: return 2 + 3;  // the same
    case OperatorKind::residual: return 3;
    case OperatorKind::loss: return 3;
    case OperatorKind::embedding: return 2 + 3;
    case OperatorKind::optimizer: return 7;
    default: return 1;
  }
}

std::function<void()> one_run(const Maker& make, OperatorKind kind, const OperatorShape& shape) {
  const DType type = kind == OperatorKind::optimizer ? make.acc : make.act;
  const index_t elements = std::max<index_t>(
      1, std::llround(shape[0] / (passes_of(kind) * static_cast<double>(size_of(type)))));
  switch (kind) {
    case OperatorKind::matmul: return make.matmul(shape);
    case OperatorKind::attention_forward: return make.attention(shape, false);
    case OperatorKind::attention_backward: return make.attention(shape, true);
    case OperatorKind::whole: return make.orthogonal(shape);
    case OperatorKind::norm: return make.norm(elements);
    case OperatorKind::activation: return make.activation(elements);
    case OperatorKind::residual: return make.residual(elements);
    case OperatorKind::loss: return make.loss(elements);
    case OperatorKind::embedding: return make.embedding(elements);
    case OperatorKind::optimizer: return make.optimizer(elements);
    case OperatorKind::count_: break;
  }
  T3D_CHECK(false, "operator {}", static_cast<int>(kind));
}

}  // namespace

std::function<void()> operator_run(const ProbeMachine& machine, OperatorKind kind,
                                   ComputeType compute, const OperatorShape& shape,
                                   double footprint) {
  const DType act = activation_of(compute);
  const Maker make{machine, act, accumulator_of(act)};
  const double bytes = operand_bytes(kind, static_cast<double>(size_of(act)), shape);
  const double wished = footprint / std::max(1.0, bytes);
  const index_t most = kind == OperatorKind::optimizer ? kMostStates : kMostSets;
  const index_t sets = std::clamp<index_t>(static_cast<index_t>(wished), 1, most);
  std::vector<std::function<void()>> runs;
  for (index_t set = 0; set < sets; ++set) runs.push_back(one_run(make, kind, shape));
  return [runs = std::move(runs), next = std::size_t{0}]() mutable {
    runs[next]();
    next = (next + 1) % runs.size();
  };
}

}  // namespace t3d
