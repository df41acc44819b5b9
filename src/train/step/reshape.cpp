#include "train/step/reshape.hpp"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "comm/cost.hpp"
#include "core/error.hpp"
#include "tensor3d/packed_exchange.hpp"
#include "tensor3d/shard_routes.hpp"

namespace t3d {
namespace {

class Mover {
 public:
  /// `buckets`: of any rank with a place under the plan to come.
  Mover(Machine& machine, const Plan& before, const Plan& after,
        const std::vector<BucketTable>& buckets)
      : machine_(machine),
        world_(machine.device_world().subgroup(everybody(machine.world().size()), kReshapeAxis)),
        buckets_(buckets),
        routes_(before, after, machine.world().rank()) {
    const auto ranks = [](const Plan& plan) {
      const auto& [p, q, r] = plan.replicas.front().cuboid;
      return p * q * r;
    };
    most_ranks_ = std::min(ranks(before), ranks(after));
  }

  /// One bucket of one kind. `shard` is this rank's under the old plan, or nothing; returns that
  /// under the new one.
  Tensor move(std::size_t bucket, const Tensor& shard, const ShardRoutes::Holders& holders,
              DType dtype, MemoryKind kind) {
    Tensor result;
    if (routes_.receives(holders.to))
      result = Tensor(machine_.device(), dtype, 1, routes_.count_to(bucket), kind);
    std::vector<MovedBox> entries;
    for (const ParamEntry& entry : buckets_[bucket].entries)
      entries.push_back({{0, 0, entry.rows, entry.cols}, size_of(dtype)});
    for (const auto& round : rounds_of(entries, kRoundBytes / 4 * most_ranks_))
      run(bucket, round, holders, shard, result, dtype);
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

  void run(std::size_t bucket, const std::vector<Strip>& round, const ShardRoutes::Holders& holders,
           const Tensor& shard, const Tensor& result, DType dtype) {
    PackedExchange exchange(machine_.device(), machine_.ops(), machine_.queue(), *world_, dtype,
                            MemoryKind::workspace);
    if (result.allocated())
      routes_.for_each_received(bucket, round, holders, [&](int sender, const RoutePiece& piece) {
        exchange.receive(
            sender, rectangle(result.view(), piece.to_offset, piece.rows, piece.cols, piece.to_ld));
      });
    if (shard.allocated())
      routes_.for_each_sent(bucket, round, holders, [&](int receiver, const RoutePiece& piece) {
        if (receiver != world_->rank()) bytes_ += piece.count() * size_of(dtype);
        exchange.send(receiver, rectangle(ConstTensorView(shard.view()), piece.from_offset,
                                          piece.rows, piece.cols, piece.from_ld));
      });
    exchange.start();
    exchange.finish();
  }

  Machine& machine_;
  std::unique_ptr<Communicator> world_;
  const std::vector<BucketTable>& buckets_;
  ShardRoutes routes_;
  index_t most_ranks_ = 1;
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
                                    Formation& formation, Ledger& predicted, index_t source) {
  const Plan& after = formation.plan();
  const std::vector<NamedState> had = states_of(before), wants = states_of(after);
  const index_t leaves_before = std::ssize(before.replicas) * before.leaves_per_replica();
  const DType dtype = accumulator_of(after.activation());
  T3D_CHECK(dtype == accumulator_of(before.activation()), "a plan with other types of state");
  std::vector<std::string> reset;
  const ModelShape any(after.model, after.replicas.front());
  const MeshShape mesh = after.mesh();
  const std::vector<BucketTable> buckets =
      parameter_buckets(any, mesh.seen_from(0), mesh.coord_of(mesh.rank_of({})));
  Mover mover(machine, before, after, buckets);
  for (std::size_t at = 0; at < wants.size(); ++at) {
    const NamedState& wanted = wants[at];
    const std::string old_name = leaf_source(wanted.name, leaves_before);
    const auto old = std::find_if(had.begin(), had.end(),
                                  [&](const NamedState& one) { return one.name == old_name; });
    if (old == had.end()) {
      if (StateBuffers* buffers = buffers_of(formation, wanted.name)) buffers->clear();
      reset.push_back(wanted.name);
      continue;
    }
    const MemoryKind kind = wanted.name.empty() ? MemoryKind::weights : MemoryKind::optimizer;
    const bool again = std::any_of(wants.begin() + static_cast<std::ptrdiff_t>(at) + 1, wants.end(),
                                   [&](const NamedState& later) {
                                     return leaf_source(later.name, leaves_before) == old_name;
                                   });
    const ShardRoutes::Holders holders{old->replica < 0 ? source : old->replica, wanted.replica};
    for (std::size_t bucket = 0; bucket < buckets.size(); ++bucket) {
      if (has_only_matrices(buckets[bucket]) && !wanted.kind.has_matrices) continue;
      if (buckets[bucket].frozen && !wanted.name.empty()) continue;
      Tensor* shard = find(state, old_name, bucket);
      const Tensor nothing;
      give(formation, wanted.name, bucket,
           mover.move(bucket, shard != nullptr ? *shard : nothing, holders, dtype, kind));
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
