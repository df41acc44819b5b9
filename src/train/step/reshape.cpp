#include "train/step/reshape.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "comm/cost.hpp"
#include "core/error.hpp"
#include "core/route.hpp"
#include "tensor3d/packed_exchange.hpp"

namespace t3d {
namespace {

/// The buckets of every rank that has a place, by world rank; nothing for idle ones.
class ShardMap {
 public:
  explicit ShardMap(const Plan& plan)
      : mesh_(plan.mesh()), tables_(static_cast<std::size_t>(plan.ranks)) {
    const std::vector<int> active = plan.active();
    for (std::size_t number = 0; number < active.size(); ++number) {
      const Coord coord = mesh_.coord_of(static_cast<int>(number));
      const ModelShape shape(plan.model, plan.replica(coord.d));
      Rank& rank = tables_[static_cast<std::size_t>(active[number])];
      rank.coord = coord;
      rank.buckets = parameter_buckets(shape, mesh_.seen_from(coord.d), coord);
      by_replica_.resize(static_cast<std::size_t>(mesh_.extent(Axis::d)));
      by_replica_[static_cast<std::size_t>(coord.d)].push_back(active[number]);
    }
  }

  [[nodiscard]] bool has(int rank) const { return !at(rank).buckets.empty(); }
  [[nodiscard]] index_t replica_of(int rank) const { return at(rank).coord.d; }
  [[nodiscard]] const BucketTable& bucket(int rank, std::size_t number) const {
    return at(rank).buckets[number];
  }
  [[nodiscard]] index_t replicas() const { return std::ssize(by_replica_); }
  [[nodiscard]] const std::vector<int>& ranks_of(index_t replica) const {
    return by_replica_[static_cast<std::size_t>(replica)];
  }
  /// Entries are the same on all ranks that have a place.
  [[nodiscard]] const std::vector<BucketTable>& any() const {
    return at(by_replica_.front().front()).buckets;
  }

 private:
  struct Rank {
    Coord coord;
    std::vector<BucketTable> buckets;
  };
  [[nodiscard]] const Rank& at(int rank) const { return tables_[static_cast<std::size_t>(rank)]; }
  MeshShape mesh_;
  std::vector<Rank> tables_;
  std::vector<std::vector<int>> by_replica_;
};

class Mover {
 public:
  Mover(Machine& machine, const Plan& before, const Plan& after)
      : machine_(machine),
        world_(machine.device_world().subgroup(everybody(machine.world().size()), kReshapeAxis)),
        from_(before),
        to_(after),
        rank_(machine.world().rank()) {}

  /// One bucket of one kind. `shard` is this rank's under the old plan, or nothing; returns that
  /// under the new one. `leaf_from`, `leaf_to`: the only replicas that hold the kind; -1 = all.
  Tensor move(std::size_t bucket, const Tensor& shard, index_t leaf_from, index_t leaf_to,
              DType dtype, MemoryKind kind) {
    const bool receives = to_.has(rank_) && (leaf_to < 0 || to_.replica_of(rank_) == leaf_to);
    Tensor result;
    if (receives)
      result = Tensor(machine_.device(), dtype, 1, to_.bucket(rank_, bucket).shard_count(), kind);
    std::vector<MovedBox> entries;
    for (const ParamEntry& entry : from_.any()[bucket].entries)
      entries.push_back({{0, 0, entry.rows, entry.cols}, size_of(dtype)});
    const index_t most_ranks =
        std::max<index_t>(1, std::min(std::ssize(from_.ranks_of(0)), std::ssize(to_.ranks_of(0))));
    for (const auto& round : rounds_of(entries, kRoundBytes / 4 * most_ranks))
      run(bucket, round, leaf_from, leaf_to, shard, result, dtype);
    return result;
  }

  /// By the routes of all moves so far.
  [[nodiscard]] index_t bytes_to_send() const { return bytes_; }

 private:
  static std::vector<int> everybody(int ranks) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)] = rank;
    return all;
  }

  /// The replica from which `receiver` gets what all replicas hold: its own, if it had a place.
  [[nodiscard]] index_t source_replica(int receiver) const {
    return from_.has(receiver) ? from_.replica_of(receiver) : receiver % from_.replicas();
  }

  template <class Visit>
  void for_each_piece(std::size_t bucket, const std::vector<Strip>& round, int sender, int receiver,
                      Visit&& visit) const {
    const BucketTable &from = from_.bucket(sender, bucket), &to = to_.bucket(receiver, bucket);
    for (const Strip& strip : round)
      for (const RoutePiece& piece : route(from.shard_boxes(from.entries[strip.which]),
                                           to.shard_boxes(to.entries[strip.which]), strip.box))
        visit(piece);
  }

  void run(std::size_t bucket, const std::vector<Strip>& round, index_t leaf_from, index_t leaf_to,
           const Tensor& shard, const Tensor& result, DType dtype) {
    PackedExchange exchange(machine_.device(), machine_.ops(), machine_.queue(), *world_, dtype,
                            MemoryKind::workspace);
    const auto source = [&](int receiver) {
      return leaf_from >= 0 ? leaf_from : source_replica(receiver);
    };
    if (result.allocated())
      for (const int sender : from_.ranks_of(source(rank_)))
        for_each_piece(bucket, round, sender, rank_, [&](const RoutePiece& piece) {
          exchange.receive(sender, rectangle(result.view(), piece.to_offset, piece.rows, piece.cols,
                                             piece.to_ld));
        });
    if (shard.allocated())
      for (int receiver = 0; receiver < world_->size(); ++receiver) {
        const bool wants = to_.has(receiver) &&
                           (leaf_to < 0 || to_.replica_of(receiver) == leaf_to) &&
                           source(receiver) == from_.replica_of(rank_);
        if (!wants) continue;
        for_each_piece(bucket, round, rank_, receiver, [&](const RoutePiece& piece) {
          if (receiver != rank_) bytes_ += piece.rows * piece.cols * size_of(dtype);
          exchange.send(receiver, rectangle(ConstTensorView(shard.view()), piece.from_offset,
                                            piece.rows, piece.cols, piece.from_ld));
        });
      }
    exchange.start();
    exchange.finish();
  }

  Machine& machine_;
  std::unique_ptr<Communicator> world_;
  ShardMap from_, to_;
  int rank_;
  index_t bytes_ = 0;
};

/// The kinds of optimizer state of a plan, and which buckets have them.
struct KindOfState {
  std::string name;
  bool has_vectors = true, has_matrices = true;  // Muon keeps no v for the matrices of blocks
};
std::vector<KindOfState> kinds_of(OptimizerKind optimizer) {
  if (optimizer == OptimizerKind::sgd) return {{"momentum"}};
  return {{"m"}, {"v", true, optimizer != OptimizerKind::muon}};
}

/// As Muon sees it: nothing in the bucket needs a v. Models without biases have an empty bucket.
bool has_only_matrices(const BucketTable& bucket) {
  return bucket.entries.empty() || bucket.name.starts_with("blocks.");
}

/// A kind of state in a plan: its name, the replica that alone holds it, and its buckets.
struct NamedState {
  std::string name;
  index_t replica = -1;
  KindOfState kind;
};
std::vector<NamedState> states_of(const Plan& plan) {
  std::vector<NamedState> all{{"", -1, {""}}};
  for (const KindOfState& kind : kinds_of(plan.optimizer)) {
    if (!plan.updates_locally()) {
      all.push_back({"optimizer/" + kind.name, -1, kind});
      continue;
    }
    const index_t leaves = std::ssize(plan.replicas) * plan.leaves_per_replica();
    for (index_t leaf = 0; leaf < leaves; ++leaf)
      all.push_back({fmt::format("aggregate/leaf-{}/{}", leaf, kind.name),
                     leaf / plan.leaves_per_replica(), kind});
  }
  return all;
}

/// Where this rank's state of that name belongs in a formation.
StateBuffers* buffers_of(Formation& formation, const std::string& name) {
  if (formation.idle()) return nullptr;
  for (const StateSlot& slot : formation.update().state())
    if (slot.name == name) return slot.buffers;
  return nullptr;
}

void give(Formation& formation, const std::string& name, std::size_t bucket, Tensor shard) {
  if (!shard.allocated()) return;
  if (name.empty())
    formation.model().buckets()[bucket]->adopt(std::move(shard));
  else
    buffers_of(formation, name)->adopt(bucket, std::move(shard));
}

Tensor* find(TrainedState& state, const std::string& name, std::size_t bucket) {
  for (StateKind& kind : state.kinds)
    if (kind.name == name) return &kind.shards[bucket];
  return nullptr;
}

// The noise estimate is the same on all ranks that had a place; the others get it from the first.
void move_noise(Machine& machine, const Plan& before, std::vector<double> noise,
                Formation& formation, Ledger& predicted) {
  const int root = before.active().front();
  auto count = std::ssize(noise);
  machine.world().broadcast({&count, DType::i32, 1, 2}, root).wait_host();
  noise.resize(static_cast<std::size_t>(count));
  machine.world().broadcast({noise.data(), DType::f64, 1, count}, root).wait_host();
  const int ranks = machine.world().size();
  const int rank = machine.world().rank();
  predicted.count(Verb::broadcast, "world",
                  broadcast_bytes(2, ranks, rank, root, DType::i32) +
                      broadcast_bytes(count, ranks, rank, root, DType::f64));
  if (formation.idle()) return;
  const TensorView target = formation.update().aggregation().noise();
  T3D_CHECK(target.rows * target.cols == count, "{} numbers of noise for {} x {}", count,
            target.rows, target.cols);
  rescale_noise(noise, before, formation.plan());
  const Context& context = formation.context();
  context.device.copy(target.data, noise.data(), target.bytes(), context.queue);
  context.queue.synchronize();
}

}  // namespace

std::string leaf_source(const std::string& name, index_t leaves) {
  constexpr std::string_view kLeaf = "aggregate/leaf-";
  if (!name.starts_with(kLeaf)) return name;
  index_t leaf = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kLeaf.size(), end, leaf);
  if (error != std::errc()) return name;
  return fmt::format("{}{}{}", kLeaf, leaf % leaves, std::string_view(rest, end));
}

bool keeps_same_state(const Plan& before, const Plan& after) {
  return before.optimizer == after.optimizer && before.updates_locally() == after.updates_locally();
}

bool keeps_noise(const Plan& before, const Plan& after) {
  return has_noise(before) && has_noise(after) &&
         before.updates_locally() == after.updates_locally() &&
         before.aggregate.per == after.aggregate.per;
}

void rescale_noise(std::span<double> noise, const Plan& before, const Plan& after) {
  const double units = before.aggregate.reference_batch / after.aggregate.reference_batch;
  for (std::size_t at = 1; at < noise.size(); at += 2) noise[at] *= units;
}

TrainedState take_state(Formation& formation) {
  TrainedState state;
  if (formation.idle()) return state;
  Transformer& model = formation.model();
  model.weights_changed();  // no gather may be under way
  StateKind weights;
  for (ParamBucket* bucket : model.buckets()) weights.shards.push_back(bucket->take_master());
  state.kinds.push_back(std::move(weights));
  for (const StateSlot& slot : formation.update().state()) {
    StateKind kind{slot.name, slot.leaf, {}};
    for (std::size_t bucket = 0; bucket < model.buckets().size(); ++bucket)
      kind.shards.push_back(slot.buffers->take(bucket));
    state.kinds.push_back(std::move(kind));
  }
  if (const TensorView noise = formation.update().aggregation().noise(); noise.data != nullptr) {
    const Context& context = formation.context();
    state.noise.resize(static_cast<std::size_t>(noise.rows * noise.cols));
    context.device.copy(state.noise.data(), noise.data, noise.bytes(), context.queue);
    context.queue.synchronize();
  }
  return state;
}

std::vector<std::string> move_state(Machine& machine, const Plan& before, TrainedState state,
                                    Formation& formation, Ledger& predicted) {
  const Plan& after = formation.plan();
  Mover mover(machine, before, after);
  const std::vector<NamedState> had = states_of(before), wants = states_of(after);
  const index_t leaves_before = std::ssize(before.replicas) * before.leaves_per_replica();
  const DType dtype = accumulator_of(after.activation());
  T3D_CHECK(dtype == accumulator_of(before.activation()), "a plan with other types of state");
  std::vector<std::string> reset;
  const ModelShape any(after.model, after.replicas.front());
  const MeshShape mesh = after.mesh();
  const std::vector<BucketTable> buckets =
      parameter_buckets(any, mesh.seen_from(0), mesh.coord_of(mesh.rank_of({})));
  for (std::size_t at = 0; at < wants.size(); ++at) {
    const NamedState& wanted = wants[at];
    const std::string source = leaf_source(wanted.name, leaves_before);
    const auto old = std::find_if(had.begin(), had.end(),
                                  [&](const NamedState& one) { return one.name == source; });
    if (old == had.end()) {
      if (StateBuffers* buffers = buffers_of(formation, wanted.name)) buffers->clear();
      reset.push_back(wanted.name);
      continue;
    }
    const MemoryKind kind = wanted.name.empty() ? MemoryKind::weights : MemoryKind::optimizer;
    const bool again = std::any_of(
        wants.begin() + static_cast<std::ptrdiff_t>(at) + 1, wants.end(),
        [&](const NamedState& later) { return leaf_source(later.name, leaves_before) == source; });
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      if (has_only_matrices(buckets[bucket]) && !wanted.kind.has_matrices) continue;
      if (buckets[bucket].frozen && !wanted.name.empty()) continue;
      Tensor* shard = find(state, source, bucket);
      const Tensor nothing;
      give(formation, wanted.name, bucket,
           mover.move(bucket, shard != nullptr ? *shard : nothing, old->replica, wanted.replica,
                      dtype, kind));
      if (shard != nullptr && !again) shard->reset();
    }
  }
  predicted.count(Verb::exchange, kReshapeAxis, mover.bytes_to_send());
  if (keeps_noise(before, after))
    move_noise(machine, before, std::move(state.noise), formation, predicted);
  else if (has_noise(after))
    reset.push_back(kNoiseState);
  return reset;
}

}  // namespace t3d
