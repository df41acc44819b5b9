#include "hetero/cost/update_memory.hpp"
#include "hetero/cost/update_traffic.hpp"
#include "ops/adasum_tree.hpp"
#include "tensor3d/refined_routes.hpp"

namespace t3d {
namespace {

Held numbers(MemoryWalk& walk, index_t count) {
  return walk.take(MemoryKind::workspace, count * size_of(DType::f64));
}

/// In place; flat Adasum has a few numbers.
class AllReduceMemory final : public AggregationMemory {
 public:
  AllReduceMemory(MemoryWalk& walk, const RankView& rank) {
    if (rank.plan.aggregate.method != AggregateMethod::adasum) return;
    const index_t groups = group_count(rank.plan);
    for (const index_t count :
         {2 * groups, groups, std::ssize(rank.plan.replicas), std::ssize(rank.plan.replicas)})
      small_.push_back(numbers(walk, count));
  }
  void keep(std::size_t) override {}
  void start(std::size_t) override {}
  void finish() override {}

 private:
  std::vector<Held> small_;
};

/// Every rank combines its own columns of all leaves.
class ColumnsMemory : public AggregationMemory {
 public:
  ColumnsMemory(MemoryWalk& walk, const RankView& rank, ModelMemory& model)
      : walk_(walk),
        rank_(rank),
        model_(model),
        per_replica_(rank.plan.leaves_per_replica()),
        leaves_(std::ssize(rank.plan.replicas) * per_replica_),
        acc_(size_of(rank.accumulator)),
        wire_(size_of(leaf_wire(rank))),
        shares_(model.all().size()) {
    const index_t groups = group_count(rank.plan);
    std::vector<index_t> counts{groups * leaves_};
    if (rank.plan.aggregate.method == AggregateMethod::adasum)
      counts.insert(counts.end(),
                    {groups * adasum::packed_size(leaves_), groups * 2, groups, leaves_, leaves_});
    for (const index_t count : counts) small_.push_back(numbers(walk, count));
  }

  void keep(std::size_t bucket) override {
    Held& rows = shares_[bucket].rows;
    if (!rows.there()) rows = gradients(bucket, per_replica_ * shard(bucket) * acc_);
  }
  void start(std::size_t bucket) override {
    if (per_replica_ > 1) keep(bucket);
    send(bucket);
  }
  void finish() override {
    if (rank_.plan.aggregate.method == AggregateMethod::adasum) {
      for (Share& share : shares_) share.messages.clear();
      for (Share& share : shares_) share.rows.reset();
    }
    for (std::size_t bucket = 0; bucket < shares_.size(); ++bucket)
      if (!model_.all()[bucket]->frozen) spread(bucket);
    for (Share& share : shares_) {
      share.result.reset();
      share.messages.clear();
    }
  }

 protected:
  struct Share {
    Held rows, received, result;
    std::vector<Held> messages;
  };
  virtual void send(std::size_t bucket) = 0;
  virtual void spread(std::size_t bucket) = 0;

  [[nodiscard]] Held gradients(std::size_t bucket, index_t bytes) {
    return walk_.take(MemoryKind::gradients, bytes, model_.all()[bucket]->times);
  }
  [[nodiscard]] index_t shard(std::size_t bucket) const { return model_.all()[bucket]->size.shard; }
  void receive(std::size_t bucket, index_t columns) {
    const index_t padded = (columns + kLeafRowUnit - 1) / kLeafRowUnit * kLeafRowUnit;
    shares_[bucket].received = gradients(bucket, leaves_ * padded * wire_);
  }
  // Bucket by bucket, so never more than one of those that it stands for in both forms: most is
  // there either at the first of them or at the last. `pack(count)` makes the messages of so many.
  template <class Pack>
  void replace_received(std::size_t bucket, index_t result_elements, const Pack& pack) {
    Share& share = shares_[bucket];
    const index_t times = model_.all()[bucket]->times;
    share.result = walk_.take(MemoryKind::gradients, result_elements * wire_);
    share.messages.clear();
    share.received.set_times(1);
    pack(times - 1);
    share.result.set_times(times);
    share.received.reset();
    for (Held& message : share.messages) message.set_times(times);
  }

  MemoryWalk& walk_;
  const RankView& rank_;
  ModelMemory& model_;
  index_t per_replica_, leaves_, acc_, wire_;
  std::vector<Share> shares_;

 private:
  std::vector<Held> small_;
};

/// Equal cuts: an own chunk of the own share (leaf_exchange_chunks.cpp).
class ChunkMemory final : public ColumnsMemory {
 public:
  using ColumnsMemory::ColumnsMemory;

 private:
  void send(std::size_t bucket) override {
    const index_t own = shard(bucket), replicas = std::ssize(rank_.plan.replicas);
    if (wire_ != acc_)
      shares_[bucket].messages.push_back(gradients(bucket, per_replica_ * own * wire_));
    receive(bucket, even_size(own, replicas, rank_.coord.d, kLeafRowUnit));
  }
  void spread(std::size_t bucket) override {
    if (wire_ != acc_ && std::ssize(rank_.plan.replicas) > 1)
      return replace_received(bucket, shard(bucket), [](index_t) {});
    shares_[bucket].messages.clear();
    shares_[bucket].received.reset();
  }
};

/// Different cuts: columns of the common refinement, packed messages (leaf_exchange_refined.cpp).
class RefinedMemory final : public ColumnsMemory {
 public:
  RefinedMemory(MemoryWalk& walk, const RankView& rank, ModelMemory& model)
      : ColumnsMemory(walk, rank, model), here_(rank.number()) {
    routes_ = refined_routes(rank.plan, here_);
  }
  [[nodiscard]] index_t table_bytes() const override { return t3d::table_bytes(routes_); }

 private:
  [[nodiscard]] const RefinedBucket& routes(std::size_t bucket) const {
    return *routes_[model_.all()[bucket]->number];
  }
  /// Messages of `count` of the buckets that this one stands for, each `rows` times as long as its
  /// route.
  template <class Sends, class Receives>
  void pack(std::size_t bucket, const Sends& sends, const Receives& receives, index_t rows,
            index_t count) {
    const auto add = [&](const auto& route) {
      if (route.count > 0)
        shares_[bucket].messages.push_back(
            walk_.take(MemoryKind::gradients, route.count * rows * wire_, count));
    };
    for (const auto& [peer, route] : sends) add(route);
    for (const auto& [peer, route] : receives)
      if (peer != here_) add(route);
  }
  void send(std::size_t bucket) override {
    receive(bucket, routes(bucket).columns);
    pack(bucket, routes(bucket).owners, routes(bucket).holders, per_replica_,
         model_.all()[bucket]->times);
  }
  void spread(std::size_t bucket) override {
    replace_received(bucket, routes(bucket).columns, [&](index_t count) {
      pack(bucket, routes(bucket).holders, routes(bucket).owners, 1, count);
    });
  }

  int here_;
  RefinedRoutes routes_;
};

}  // namespace

std::unique_ptr<AggregationMemory> make_aggregation_memory(MemoryWalk& walk, const RankView& rank,
                                                           ModelMemory& model) {
  const AggregateConfig& aggregate = rank.plan.aggregate;
  const bool adasum = aggregate.method == AggregateMethod::adasum;
  const bool alike = rank.plan.alike();
  if (adasum ? aggregate.algorithm == AggregateAlgorithm::flat : alike)
    return std::make_unique<AllReduceMemory>(walk, rank);
  if (alike) return std::make_unique<ChunkMemory>(walk, rank, model);
  return std::make_unique<RefinedMemory>(walk, rank, model);
}

}  // namespace t3d
