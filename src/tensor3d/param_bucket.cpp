#include "tensor3d/param_bucket.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace t3d {
ParamBucket::ParamBucket(const Context& context, Communicator& group, BucketTable table)
    : context_(context),
      group_(group),
      table_(std::move(table)),
      block_dtype_(table_.matrices ? context.activation : context.accumulator()),
      counts_(table_.shards.sizes()),
      gradient_written_(table_.entries.size(), false) {
  T3D_CHECK(table_.shards.parts() == group.size() && table_.member == group.rank(),
            "bucket {} has {} shards, its group {} ranks", name(), table_.shards.parts(),
            group.size());
}

void ParamBucket::allocate() {
  master_ = context_.make(context_.accumulator(), 1, shard_count(), MemoryKind::weights);
}

void ParamBucket::adopt(Tensor master) {
  T3D_CHECK(master.cols() == shard_count(), "{} weights for a shard of {}", master.cols(),
            shard_count());
  master_ = std::move(master);
  invalidate();
}

Tensor ParamBucket::take_master() { return std::move(master_); }

int ParamBucket::entry(const std::string& name) const {
  const int number = table_.find(name);
  T3D_CHECK(number >= 0, "bucket {} has no {}", table_.name, name);
  return number;
}

void ParamBucket::initialise(std::uint64_t seed) {
  for (const ParamEntry& entry : entries()) {
    for (const PlacedBox& piece : shard_boxes(entry)) {
      TensorView view = TensorView(master_.view().at(0, piece.offset), master_.dtype(),
                                   piece.box.rows, piece.box.cols);
      if (entry.init.kind == ParamInit::Kind::normal)
        context_.ops.random_init(context_.queue, view, {seed, stream_of(entry.name)},
                                 piece.box.row0, piece.box.col0, entry.cols, entry.init.std);
      else
        context_.ops.fill(context_.queue, view,
                          entry.init.kind == ParamInit::Kind::ones ? 1.0 : 0.0);
    }
  }
  invalidate();
}

bool ParamBucket::block_is_master() const {
  return group_.size() == 1 && block_dtype_ == context_.accumulator();
}

void ParamBucket::prefetch() {
  if (block_is_master() || block_valid_) return;
  block_valid_ = true;
  if (!block_.allocated())
    block_ = context_.make(block_dtype_, 1, table_.count, MemoryKind::gathered);
  TensorView own = block_.view().col_range(table_.shards.begin(table_.member), shard_count());
  if (group_.size() == 1 || block_dtype_ != context_.accumulator())
    context_.ops.copy(context_.queue, master_, own);
  if (group_.size() == 1) return;
  const ConstTensorView part =
      block_dtype_ == context_.accumulator() ? ConstTensorView(master_) : own;
  gathering_ = group_.all_gather(part, block_, counts_);
}

void ParamBucket::acquire() {
  prefetch();
  const PhaseClock::Scope scope(context_.clock, "gather weights");
  gathering_.wait(context_.queue);
}

void ParamBucket::release() {
  if (context_.keep_weights || block_is_master()) return;
  gathering_.wait(context_.queue);
  block_.reset();
  block_valid_ = false;
}

void ParamBucket::invalidate() {
  gathering_.wait(context_.queue);
  block_valid_ = false;
}

TensorView ParamBucket::entry_view(TensorView flat, const ParamEntry& entry) const {
  return flat.col_range(entry.offset, entry.count())
      .flat()
      .reshaped(entry.local_rows(), entry.local_cols());
}

ConstTensorView ParamBucket::weights(int entry) const {
  T3D_CHECK(block_is_master() || block_valid_, "weights of {} are not gathered", name());
  return entry_view(block_is_master() ? master_.view() : block_.view(),
                    entries()[static_cast<std::size_t>(entry)]);
}

void ParamBucket::ensure_gradient_block() {
  T3D_CHECK(!frozen(), "{} is frozen and has no gradients", name());
  Tensor& target = group_.size() == 1 ? gradient_shard_ : gradient_block_;
  if (target.allocated()) return;
  target = context_.make(context_.accumulator(), 1, table_.count, MemoryKind::gradients);
  std::fill(gradient_written_.begin(), gradient_written_.end(), false);
}

TensorView ParamBucket::gradient_block() {
  return group_.size() == 1 ? gradient_shard_.view() : gradient_block_.view();
}

ParamBucket::GradientTarget ParamBucket::gradient(int entry) {
  ensure_gradient_block();
  const auto at = static_cast<std::size_t>(entry);
  const bool written = gradient_written_[at];
  gradient_written_[at] = true;
  return {entry_view(gradient_block(), entries()[at]), written};
}

TensorView ParamBucket::gradient_to_add(int entry) {
  const GradientTarget target = gradient(entry);
  if (!target.accumulate) context_.ops.fill(context_.queue, target.view, 0);
  return target.view;
}

void ParamBucket::start_reduce() {
  if (frozen()) return;
  ensure_gradient_block();
  for (std::size_t entry = 0; entry < entries().size(); ++entry) {
    if (!gradient_written_[entry]) (void)gradient_to_add(static_cast<int>(entry));
    if (entries()[entry].frozen)  // beside others that are trained
      context_.ops.fill(context_.queue, gradient(static_cast<int>(entry)).view, 0);
  }
  if (group_.size() == 1) return;
  gradient_shard_ = context_.make(context_.accumulator(), 1, shard_count(), MemoryKind::gradients);
  reducing_ = group_.reduce_scatter(gradient_block_, gradient_shard_, counts_);
}

void ParamBucket::finish_reduce() {
  const PhaseClock::Scope scope(context_.clock, "reduce gradients");
  reducing_.wait(context_.queue);
  gradient_block_.reset();
}

void ParamBucket::drop_gradients() {
  gradient_shard_.reset();
  gradient_block_.reset();
}

}  // namespace t3d
