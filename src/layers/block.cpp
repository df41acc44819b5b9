#include "layers/block.hpp"

#include <fmt/core.h>

namespace t3d {
namespace {

/// Where a linear finds its bias.
ParamBucket* where(bool there, ParamBucket& vectors) { return there ? &vectors : nullptr; }

}  // namespace

Block::Block(const Context& context, index_t number, const ModelShape& shape,
             const BlockBuckets& buckets, bool recompute)
    : Block(context, fmt::format("blocks.{}", number), number, shape, buckets, recompute) {}

Block::Block(const Context& context, const std::string& name, index_t number,
             const ModelShape& shape, const BlockBuckets& buckets, bool recompute)
    : context_(context),
      shape_(shape),
      number_(static_cast<std::uint64_t>(number)),
      recompute_(recompute),
      buckets_{&buckets.qkv, &buckets.proj, &buckets.up, &buckets.down},
      norm1_(context, name + ".norm1", shape.model.norm, shape.model.hidden, shape.model.norm_eps,
             buckets.hidden_vectors),
      norm2_(context, name + ".norm2", shape.model.norm, shape.model.hidden, shape.model.norm_eps,
             buckets.hidden_vectors),
      attention_(context, name + ".attn", number, shape, buckets.qkv, buckets.proj,
                 where(shape.model.qkv_bias(), buckets.inner_vectors),
                 where(shape.model.proj_bias(), buckets.hidden_vectors), buckets.head_vectors,
                 buckets.adapters),
      mlp_(context, name + ".mlp", shape, buckets.up, buckets.down,
           where(shape.model.mlp_bias(), buckets.inner_vectors),
           where(shape.model.mlp_bias(), buckets.hidden_vectors), buckets.adapters) {}

void residual_dropout(const Context& context, DistTensor& x, const PassInfo& pass, double p,
                      std::uint64_t place) {
  if (p <= 0 || !pass.training) return;
  const PhaseClock::Scope scope(context.clock, "dropout");
  const Box box = x.layout.box(context.mesh.shape(), context.mesh.coord());
  context.ops.dropout(context.queue, {x.local, pass.dropout_key(place),
                                      pass.first_position * pass.length + box.row0, box.col0,
                                      x.layout.cols.length(), p});
}

void Block::drop(DistTensor& x, const PassInfo& pass, std::uint64_t place) const {
  residual_dropout(context_, x, pass, shape_.model.dropout, 1 + 2 * number_ + place);
}

DistTensor Block::run(DistTensor x, const PassInfo& pass, Saved* saved) {
  DistTensor h = norm1_.forward(x, saved != nullptr ? &saved->norm1 : nullptr);
  DistTensor x1 =
      attention_.forward(std::move(h), pass, saved != nullptr ? &saved->attention : nullptr);
  drop(x1, pass, 0);
  h = norm2_.forward_sum(x, x1, saved != nullptr ? &saved->norm2 : nullptr);
  DistTensor x2 = mlp_.forward(std::move(h), pass, saved != nullptr ? &saved->mlp : nullptr);
  drop(x2, pass, 1);
  context_.ops.add(context_.queue, x1.local, x2.local);
  if (saved != nullptr) {
    saved->x = std::move(x);
    saved->x1 = std::move(x1);
  }
  return x2;
}

DistTensor Block::forward(DistTensor x, const PassInfo& pass, Saved* saved) {
  if (saved == nullptr || !recompute_) return run(std::move(x), pass, saved);
  // Keep only the input; a copy goes through, as run() consumes what it is given.
  DistTensor copy{x.layout, context_.make(x.local.dtype(), x.local.rows(), x.local.cols(),
                                          MemoryKind::activations)};
  context_.ops.copy(context_.queue, x.local, copy.local);
  saved->x = std::move(x);
  return run(std::move(copy), pass, nullptr);
}

// The gradient that enters a branch: the residual's own, or its masked copy under dropout.
DistTensor Block::branch_gradient(const DistTensor& dx, const PassInfo& pass,
                                  std::uint64_t place) const {
  DistTensor copy{dx.layout, context_.make(dx.local.dtype(), dx.local.rows(), dx.local.cols(),
                                           MemoryKind::activations)};
  context_.ops.copy(context_.queue, dx.local, copy.local);
  drop(copy, pass, place);
  return copy;
}

void Block::backward(DistTensor& dx, const PassInfo& pass, Saved& saved) {
  if (recompute_) (void)run(std::move(saved.x), pass, &saved);
  const bool masked = shape_.model.dropout > 0;
  {
    const DistTensor dh = masked ? mlp_.backward(branch_gradient(dx, pass, 1), saved.mlp)
                                 : mlp_.backward(dx, saved.mlp);
    norm2_.backward_add(dh, saved.x1, saved.norm2, dx);
  }
  saved.x1.local.reset();
  const DistTensor dh =
      masked ? attention_.backward(branch_gradient(dx, pass, 0), pass, saved.attention)
             : attention_.backward(dx, pass, saved.attention);
  norm1_.backward_add(dh, saved.x, saved.norm1, dx);
  saved = {};  // the blocks before need room for their gradients
}

}  // namespace t3d
