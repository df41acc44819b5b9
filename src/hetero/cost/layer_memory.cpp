#include "hetero/cost/layer_memory.hpp"

#include <algorithm>

#include "tensor3d/logits_width.hpp"

namespace t3d {
namespace {

/// What the norm of the queries' or the keys' heads keeps.
struct SavedHeads {
  Held input, moments;
};

/// What a block keeps for its backward pass.
struct SavedBlock {
  Held x, x1, moments1, moments2;
  SavedHeads q_norm, k_norm;
  Held attention_gathered, attention_input, qkv, out, lse, proj_gathered;
  Held up_gathered, mlp_input, up, active, down_gathered;

  void set_times(index_t times) {
    for (Held* held : {&x, &x1, &moments1, &moments2, &q_norm.input, &q_norm.moments, &k_norm.input,
                       &k_norm.moments, &attention_gathered, &attention_input, &qkv, &out, &lse,
                       &proj_gathered, &up_gathered, &mlp_input, &up, &active, &down_gathered})
      held->set_times(times);
  }
};

/// A linear's two sides and its parameters.
struct LinearMemory {
  Side in, out;
  BucketMemory &weights, &vectors;
  bool bias = false;
  bool needs_input = true;  // in backward
  index_t low = 0;          // columns between the two matrices of its adapter; 0 = none
};

/// One micro-batch.
class Pass {
 public:
  Pass(MemoryWalk& walk, const RankView& rank, ModelMemory& model, index_t sequences)
      : walk_(walk),
        rank_(rank),
        model_(model),
        rows_(rank, sequences),
        hidden_(hidden_side(rank, rows_)),
        act_(size_of(rank.activation)),
        acc_(size_of(rank.accumulator)),
        saved_(model.blocks()) {}

  void run(bool last, const BucketDone& done);

 private:
  enum Kind { kQkv, kProj, kUp, kDown };

  [[nodiscard]] Held take(MemoryKind kind, index_t bytes) { return walk_.take(kind, bytes); }
  [[nodiscard]] Held activations(index_t elements) {
    return take(MemoryKind::activations, elements * act_);
  }
  [[nodiscard]] Held gathered(index_t elements) {
    return take(MemoryKind::gathered, elements * act_);
  }
  [[nodiscard]] LinearMemory linear(std::size_t block, Kind kind);
  [[nodiscard]] Held adapter(const LinearMemory& linear);
  [[nodiscard]] Held forward(const LinearMemory& linear, Held* saved);
  [[nodiscard]] Held backward(const LinearMemory& linear, Held& saved);
  [[nodiscard]] Held norm(Held* moments);
  void norm_backward(Held& moments);
  void head_norm(index_t heads_per_group, SavedHeads* saved);
  void head_norm_backward(index_t heads_per_group, SavedHeads& saved);
  [[nodiscard]] Held attention(std::size_t block, Held h, SavedBlock* saved);
  [[nodiscard]] Held mlp(std::size_t block, Held h, SavedBlock* saved);
  [[nodiscard]] Held mlp_backward(std::size_t block, SavedBlock& saved);
  [[nodiscard]] Held attention_backward(std::size_t block, SavedBlock& saved);
  [[nodiscard]] Held run_block(std::size_t block, Held x, SavedBlock* saved);
  [[nodiscard]] Held block_forward(std::size_t block, Held x);
  void block_backward(std::size_t block);
  [[nodiscard]] Held embedding();
  void embedding_backward();
  [[nodiscard]] Held head();
  [[nodiscard]] Held gather_hidden();
  [[nodiscard]] Held head_weight(index_t slice);
  void head_chunks(index_t slice);
  void head_weight_gradient(index_t slice);
  [[nodiscard]] Held scatter_hidden(Held whole);

  MemoryWalk& walk_;
  const RankView& rank_;
  ModelMemory& model_;
  Rows rows_;
  Side hidden_;
  index_t act_, acc_;
  std::vector<SavedBlock> saved_;
};

LinearMemory Pass::linear(std::size_t block, Kind kind) {
  BucketMemory &over_j = model_.inner_vectors(), &over_k = model_.hidden_vectors(),
               &weights = model_.block(block)[kind];
  const bool input = model_.needs_input(block, kind);
  const index_t low =
      rank_.model.lora.rank * std::ssize(adapted_segments(rank_.model, kBlockLinears[kind]));
  const auto from_hidden = [&](const Side& out, bool bias) {
    return LinearMemory{hidden_, out, weights, over_j, bias, input, low};
  };
  const auto to_hidden = [&](const Side& in, bool bias) {
    return LinearMemory{in, hidden_, weights, over_k, bias, input, low};
  };
  const ModelConfig& m = rank_.model;
  switch (kind) {
    case kQkv: return from_hidden(head_side(rank_, rows_, rank_.group_columns), m.qkv_bias());
    case kProj:
      return to_hidden(head_side(rank_, rows_, rank_.group_heads * m.head_size()), m.proj_bias());
    case kUp: return from_hidden(inner_side(rank_, rows_, rank_.up), m.mlp_bias());
    case kDown: break;
  }
  return to_hidden(inner_side(rank_, rows_, rank_.ffn), m.mlp_bias());
}

// Summed in the accumulator's type, used in the activations'.
Held Pass::adapter(const LinearMemory& linear) {
  if (linear.low == 0) return {};
  Held sums = take(MemoryKind::workspace, rows_.slab * linear.low * acc_);
  if (rank_.activation == rank_.accumulator) return sums;
  return take(MemoryKind::workspace, rows_.slab * linear.low * act_);
}

Held Pass::forward(const LinearMemory& linear, Held* saved) {
  model_.prefetch(linear.weights);
  Held buffer;
  if (linear.in.members > 1) buffer = gathered(linear.in.all());
  Held y = activations(linear.out.own());
  const DType sums = partial(rank_, linear.in);
  Held sum;
  if (linear.out.members > 1 || sums != rank_.activation)
    sum = take(MemoryKind::workspace, linear.out.all() * size_of(sums));
  (void)adapter(linear);
  sum.reset();
  model_.release(linear.weights);
  if (saved != nullptr && rank_.plan.keep_inputs && linear.needs_input) *saved = std::move(buffer);
  return y;
}

Held Pass::backward(const LinearMemory& linear, Held& saved) {
  model_.prefetch(linear.weights);
  if (linear.bias) model_.ensure_gradient(linear.vectors);
  Held dy, sum;
  if (linear.out.members > 1) dy = gathered(linear.out.all());
  Held dx = activations(linear.in.own());
  const DType sums = partial(rank_, linear.out);
  if (linear.in.members > 1 || sums != rank_.activation)
    sum = take(MemoryKind::workspace, linear.in.all() * size_of(sums));
  const Held dlow = adapter(linear);
  model_.release(linear.weights);
  if (!linear.needs_input) return dx;
  if (linear.in.members > 1 && !saved.there()) saved = gathered(linear.in.all());
  if (linear.low > 0) {
    model_.ensure_gradient(model_.hidden_adapters());
    model_.ensure_gradient(model_.inner_adapters());
    (void)adapter(linear);
  }
  model_.ensure_gradient(linear.weights);
  saved.reset();
  return dx;
}

Held Pass::norm(Held* moments) {
  const Held stats = take(MemoryKind::workspace, rank_.r * rows_.over_j * 3 * acc_);
  Held own = take(MemoryKind::activations, rows_.over_j * 2 * acc_);
  Held y = activations(hidden_.own());
  if (moments != nullptr) *moments = std::move(own);
  return y;
}

void Pass::norm_backward(Held& moments) {
  const Held sums = take(MemoryKind::workspace, rows_.over_j * 2 * acc_);
  model_.ensure_gradient(model_.hidden_vectors());
  moments.reset();
}

void Pass::head_norm(index_t heads_per_group, SavedHeads* saved) {
  const index_t rows = head_side(rank_, rows_, heads_per_group).own();
  const index_t elements = rows * rank_.model.head_size();
  Held input = activations(elements);
  Held moments = take(MemoryKind::activations, rows * 2 * acc_);
  {
    const Held stats = take(MemoryKind::workspace, rows * 3 * acc_);
    const Held y = take(MemoryKind::workspace, elements * act_);
  }
  if (saved == nullptr) return;
  saved->input = std::move(input);
  saved->moments = std::move(moments);
}

void Pass::head_norm_backward(index_t heads_per_group, SavedHeads& saved) {
  const index_t rows = head_side(rank_, rows_, heads_per_group).own();
  const index_t elements = rows * rank_.model.head_size();
  const Held dy = take(MemoryKind::workspace, elements * act_);
  const Held dx = take(MemoryKind::workspace, elements * act_);
  const Held sums = take(MemoryKind::workspace, rows * 2 * acc_);
  model_.ensure_gradient(model_.head_vectors());
  saved = {};
}

Held Pass::attention(std::size_t block, Held h, SavedBlock* saved) {
  Held qkv = forward(linear(block, kQkv), saved != nullptr ? &saved->attention_gathered : nullptr);
  const LinearMemory proj = linear(block, kProj);
  Held out = activations(proj.in.own());
  if (model_.normed_heads()) {
    head_norm(rank_.group_heads, saved != nullptr ? &saved->q_norm : nullptr);
    head_norm(1, saved != nullptr ? &saved->k_norm : nullptr);
  }
  Held lse = take(MemoryKind::activations, head_side(rank_, rows_, rank_.group_heads).own() * acc_);
  Held y = forward(proj, saved != nullptr ? &saved->proj_gathered : nullptr);
  if (saved == nullptr) return y;
  if (model_.needs_input(block, kQkv) && !saved->attention_gathered.there())
    saved->attention_input = std::move(h);
  saved->qkv = std::move(qkv);
  saved->out = std::move(out);
  saved->lse = std::move(lse);
  return y;
}

Held Pass::mlp(std::size_t block, Held h, SavedBlock* saved) {
  Held up = forward(linear(block, kUp), saved != nullptr ? &saved->up_gathered : nullptr);
  const LinearMemory down = linear(block, kDown);
  Held active = activations(down.in.own());
  Held y = forward(down, saved != nullptr ? &saved->down_gathered : nullptr);
  if (saved == nullptr) return y;
  if (model_.needs_input(block, kUp) && !saved->up_gathered.there())
    saved->mlp_input = std::move(h);
  saved->up = std::move(up);
  if (model_.needs_input(block, kDown) && !saved->down_gathered.there())
    saved->active = std::move(active);
  return y;
}

Held Pass::mlp_backward(std::size_t block, SavedBlock& saved) {
  Held masked;
  if (rank_.model.dropout > 0) masked = activations(hidden_.own());
  Held dactive = backward(linear(block, kDown), saved.down_gathered);
  saved.active.reset();
  const LinearMemory up = linear(block, kUp);
  const Held du = activations(up.out.own());
  saved.up.reset();
  dactive.reset();
  return backward(up, saved.up_gathered);
}

Held Pass::attention_backward(std::size_t block, SavedBlock& saved) {
  Held masked;
  if (rank_.model.dropout > 0) masked = activations(hidden_.own());
  Held dout = backward(linear(block, kProj), saved.proj_gathered);
  const LinearMemory qkv = linear(block, kQkv);
  const Held dqkv = activations(qkv.out.own());
  if (model_.normed_heads()) {
    head_norm_backward(rank_.group_heads, saved.q_norm);
    head_norm_backward(1, saved.k_norm);
  }
  saved.qkv.reset();
  saved.out.reset();
  dout.reset();
  return backward(qkv, saved.attention_gathered);
}

Held Pass::run_block(std::size_t block, Held x, SavedBlock* saved) {
  Held h = norm(saved != nullptr ? &saved->moments1 : nullptr);
  Held x1 = attention(block, std::move(h), saved);
  h = norm(saved != nullptr ? &saved->moments2 : nullptr);
  Held x2 = mlp(block, std::move(h), saved);
  if (saved != nullptr) {
    saved->x = std::move(x);
    saved->x1 = std::move(x1);
  }
  return x2;
}

Held Pass::block_forward(std::size_t block, Held x) {
  if (rank_.plan.recompute == Recompute::none)
    return run_block(block, std::move(x), &saved_[block]);
  Held copy = activations(hidden_.own());
  saved_[block].x = std::move(x);
  return run_block(block, std::move(copy), nullptr);
}

void Pass::block_backward(std::size_t block) {
  SavedBlock& saved = saved_[block];
  if (rank_.plan.recompute == Recompute::block) (void)run_block(block, std::move(saved.x), &saved);
  {
    const Held dh = mlp_backward(block, saved);
    norm_backward(saved.moments2);
  }
  saved.x1.reset();
  const Held dh = attention_backward(block, saved);
  norm_backward(saved.moments1);
  saved = {};
}

Held Pass::embedding() {
  Held x = activations(hidden_.own());
  model_.prefetch(model_.table());
  if (rank_.q > 1) (void)take(MemoryKind::workspace, rows_.slab * rank_.hidden * act_);
  model_.release(model_.table());
  return x;
}

void Pass::embedding_backward() {
  if (rank_.model.position == Position::learned) model_.ensure_gradient(model_.hidden_vectors());
  if (model_.table().frozen) return;
  model_.ensure_gradient(model_.table());
  if (rank_.q > 1) (void)gathered(rows_.slab * rank_.hidden);
}

Held Pass::gather_hidden() {
  Held panel = gathered(rows_.slab * rank_.hidden);
  if (rank_.r == 1) return panel;
  const Held panels = gathered(rows_.slab * rank_.model.hidden);
  return gathered(rows_.slab * rank_.model.hidden);
}

Held Pass::head_weight(index_t slice) {
  if (rank_.r == 1) return {};
  std::vector<Held> arriving;
  for (index_t k = 0; k < rank_.r; ++k)
    arriving.push_back(take(MemoryKind::workspace, slice * rank_.cut.hidden.size(k) * act_));
  return gathered(slice * rank_.model.hidden);
}

void Pass::head_weight_gradient(index_t slice) {
  model_.ensure_gradient(model_.head_table());
  std::vector<Held> messages;
  for (index_t k = 0; k < rank_.r; ++k) {
    messages.push_back(take(MemoryKind::workspace, slice * rank_.cut.hidden.size(k) * acc_));
    messages.push_back(
        take(MemoryKind::workspace, even_size(rank_.vocab, rank_.r, k) * rank_.hidden * acc_));
  }
}

Held Pass::scatter_hidden(Held whole) {
  const index_t size = size_of(rank_.reduce);
  if (rank_.r > 1) {
    const Held panels = take(MemoryKind::workspace, rows_.slab * rank_.model.hidden * size);
    whole = take(MemoryKind::workspace, rows_.slab * rank_.hidden * size);
  }
  return activations(hidden_.own());
}

// Chunks have one or two sizes.
void Pass::head_chunks(index_t slice) {
  const index_t chunks = HeadChunks(rank_, rows_).count;
  const index_t width = logits_width(slice);
  for (const index_t chunk : {index_t{0}, chunks - 1}) {
    const index_t rows = even_size(rows_.slab, chunks, chunk);
    const Held logits = take(MemoryKind::workspace, rows * width * act_);
    const Held stats = take(MemoryKind::workspace, rank_.q * rank_.r * rows * 3 * acc_);
    const Held lse = take(MemoryKind::workspace, rows * acc_);
    const Held loss = take(MemoryKind::workspace, rows * acc_);
  }
}

Held Pass::head() {
  model_.prefetch(model_.head_table());
  const Held whole = gather_hidden();
  const index_t slice = even_size(rank_.vocab, rank_.r, rank_.coord.k);
  const Held weight = head_weight(slice);
  Held dwhole =
      take(MemoryKind::workspace, rows_.slab * rank_.model.hidden * size_of(rank_.reduce));
  Held dslice;
  const bool trained = !model_.head_table().frozen;
  if (rank_.r == 1)
    model_.ensure_gradient(model_.head_table());
  else if (trained)
    dslice = take(MemoryKind::gradients, slice * rank_.model.hidden * acc_);
  head_chunks(slice);
  model_.release(model_.head_table());
  if (rank_.r > 1 && trained) head_weight_gradient(slice);
  return scatter_hidden(std::move(dwhole));
}

void Pass::run(bool last, const BucketDone& done) {
  const Held ids = take(MemoryKind::workspace, rows_.slab * size_of(DType::i32));
  const Held targets = take(MemoryKind::workspace, rows_.slab * size_of(DType::i32));
  for (BucketMemory* bucket : model_.shared_vectors()) model_.prefetch(*bucket);
  Held x = embedding();
  for (std::size_t block = 0; block < saved_.size(); ++block) {
    if (block + 1 < saved_.size()) model_.prefetch(model_.block(block + 1).front());
    x = block_forward(block, std::move(x));
    saved_[block].set_times(model_.times(block));
  }
  Held moments, dx;
  {
    const Held h = norm(&moments);
    const Held dh = head();
    dx = activations(hidden_.own());
    norm_backward(moments);
    x.reset();
  }
  if (last && !model_.tied()) model_.start_reduce(model_.head_table());
  for (std::size_t block = saved_.size(); block-- > 0;) {
    saved_[block].set_times(1);
    block_backward(block);
    model_.block_done(block, last, done);
  }
  embedding_backward();
  dx.reset();
  if (last) model_.reduce_shared();
  for (BucketMemory* bucket : model_.shared_vectors()) model_.release(*bucket);
}

}  // namespace

void walk_nothing(ModelMemory& model, const BucketDone& done) {
  if (!model.tied()) model.start_reduce(model.head_table());
  for (std::size_t block = model.blocks(); block-- > 0;) model.block_done(block, true, done);
  model.reduce_shared();
}

void walk_training(MemoryWalk& walk, const RankView& rank, ModelMemory& model, index_t sequences,
                   bool last, const BucketDone& done) {
  Pass(walk, rank, model, sequences).run(last, done);
}

}  // namespace t3d
