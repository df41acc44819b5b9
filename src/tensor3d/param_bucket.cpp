#include "tensor3d/param_bucket.hpp"

#include <algorithm>

#include "comm/cost.hpp"
#include "core/error.hpp"

namespace t3d {
namespace {

constexpr index_t kShardUnit = 16;  // 64 bytes of fp32: shares start on cache lines

// The pieces of a row-major [rows, cols] matrix (global box `box`) that flat range [a, b) covers:
// at most a row's tail, whole rows, and a row's head. `base`: flat index that b's offsets start at.
void append_range(const Box& box, index_t a, index_t b, index_t base, std::vector<BlockBox>& out) {
  while (a < b) {
    const index_t row = a / box.cols;
    const index_t col = a % box.cols;
    Box piece{box.row0 + row, box.col0 + col, 1, std::min(box.cols - col, b - a)};
    if (col == 0 && b - a >= box.cols) {
      piece.rows = (b - a) / box.cols;
      piece.cols = box.cols;
    }
    out.push_back({piece, a + base});
    a += piece.count();
  }
}

}  // namespace

index_t ParamEntry::local_rows() const {
  index_t sum = 0;
  for (const Box& segment : segments) sum += segment.rows;
  return sum;
}

ParamBucket::ParamBucket(const Context& context, Communicator& group, std::string name,
                         DType block_dtype)
    : context_(context), group_(group), name_(std::move(name)), block_dtype_(block_dtype) {}

int ParamBucket::add(ParamEntry entry) {
  T3D_CHECK(!master_.allocated(), "bucket {} is finished", name_);
  for (const Box& segment : entry.segments)
    T3D_CHECK(segment.cols == entry.local_cols(), "segments of {} differ in width", entry.name);
  entry.offset = block_count_;
  block_count_ += entry.count();
  entries_.push_back(std::move(entry));
  return static_cast<int>(entries_.size()) - 1;
}

void ParamBucket::finish() {
  shard_ = Partition::even(name_, block_count_, group_.size(), kShardUnit);
  counts_ = shard_.sizes();
  master_ = context_.make(context_.accumulator(), 1, shard_count(), MemoryKind::weights);
  gradient_written_.assign(entries_.size(), false);
}

void ParamBucket::initialise(std::uint64_t seed) {
  for (const ParamEntry& entry : entries_) {
    for (const BlockBox& piece : shard_boxes(entry)) {
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

std::pair<index_t, index_t> ParamBucket::shard_range(const ParamEntry& entry) const {
  const index_t begin = shard_.begin(group_.rank());
  const index_t end = shard_.end(group_.rank());
  const index_t first = std::clamp(entry.offset, begin, end) - begin;
  const index_t last = std::clamp(entry.offset + entry.count(), begin, end) - begin;
  return {first, last};
}

std::vector<BlockBox> ParamBucket::shard_boxes(const ParamEntry& entry) const {
  std::vector<BlockBox> result;
  const index_t begin = shard_.begin(group_.rank());
  const index_t end = shard_.end(group_.rank());
  index_t at = entry.offset;  // flat start of the segment in the block
  for (const Box& segment : entry.segments) {
    const index_t first = std::max(begin, at) - at;
    const index_t last = std::min(end, at + segment.count()) - at;
    if (first < last) append_range(segment, first, last, at - begin, result);
    at += segment.count();
  }
  return result;
}

bool ParamBucket::block_is_master() const {
  return group_.size() == 1 && block_dtype_ == context_.accumulator();
}

void ParamBucket::prefetch() {
  if (block_is_master() || block_valid_) return;
  block_valid_ = true;
  if (!block_.allocated())
    block_ = context_.make(block_dtype_, 1, block_count_, MemoryKind::gathered);
  TensorView own = block_.view().col_range(shard_.begin(group_.rank()), shard_count());
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
  T3D_CHECK(block_is_master() || block_valid_, "weights of {} are not gathered", name_);
  return entry_view(block_is_master() ? master_.view() : block_.view(),
                    entries_[static_cast<std::size_t>(entry)]);
}

void ParamBucket::ensure_gradient_block() {
  Tensor& target = group_.size() == 1 ? gradient_shard_ : gradient_block_;
  if (target.allocated()) return;
  target = context_.make(context_.accumulator(), 1, block_count_, MemoryKind::gradients);
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
  return {entry_view(gradient_block(), entries_[at]), written};
}

TensorView ParamBucket::gradient_to_add(int entry) {
  const GradientTarget target = gradient(entry);
  if (!target.accumulate) context_.ops.fill(context_.queue, target.view, 0);
  return target.view;
}

void ParamBucket::start_reduce() {
  ensure_gradient_block();
  for (std::size_t entry = 0; entry < entries_.size(); ++entry)
    if (!gradient_written_[entry]) (void)gradient_to_add(static_cast<int>(entry));
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

index_t ParamBucket::gather_bytes() const {
  return block_is_master() ? 0 : all_gather_bytes(counts_, group_.rank(), block_dtype_);
}

index_t ParamBucket::reduce_bytes() const {
  return reduce_scatter_bytes(counts_, group_.rank(), context_.accumulator());
}

}  // namespace t3d
