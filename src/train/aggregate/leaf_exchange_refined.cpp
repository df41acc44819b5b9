// Different cuts: a rank's columns are the parts of the common refinement that fall to it
// (tensor3d/refined_routes.hpp). Results go back the way the leaves came. Every rank sends and
// receives (d-1)/d of its shard each way, as where cuts are equal, but to more peers and through
// the world.
#include "core/route.hpp"
#include "tensor3d/packed_exchange.hpp"
#include "tensor3d/refined_routes.hpp"
#include "train/aggregate/leaf_exchange.hpp"

namespace t3d {
namespace {

class RefinedExchange final : public LeafExchange {
 public:
  RefinedExchange(const AggregateSetup& setup, DType wire)
      : context_(setup.context), leaves_(setup.leaves), wire_(wire) {
    const RefinedRoutes routes = refined_routes(setup.plan, context_.mesh.world().rank());
    for (std::size_t bucket = 0; bucket < routes.size(); ++bucket) {
      Shard& shard = shards_.emplace_back(Shard{routes[bucket], {}, {}, {}, nullptr});
      for (const RefinedBucket::Columns& columns : shard.routes->entries)
        shard.segments.push_back(
            {columns.first, columns.last, setup.groups.of(bucket, columns.entry)});
    }
  }

  [[nodiscard]] const std::vector<Segment>& segments(std::size_t bucket) const override {
    return shards_[bucket].segments;
  }
  void send(std::size_t bucket, ConstTensorView own) override;
  void settle() override {
    for (Shard& shard : shards_)
      if (shard.exchange != nullptr) shard.exchange->settle();
  }
  [[nodiscard]] ConstTensorView arrive(std::size_t bucket) override {
    Shard& shard = shards_[bucket];
    if (shard.exchange != nullptr) shard.exchange->finish();
    shard.exchange.reset();
    return rows(shard);
  }
  [[nodiscard]] TensorView result(std::size_t bucket, TensorView target) override {
    Shard& shard = shards_[bucket];
    shard.target = target;
    shard.result = context_.make(wire_, 1, shard.routes->columns, MemoryKind::gradients);
    return shard.result;
  }
  void spread(std::size_t bucket) override;
  void collect(std::size_t bucket, TensorView) override {
    Shard& shard = shards_[bucket];
    shard.exchange->finish();
    shard.exchange.reset();
    shard.result.reset();
  }

 private:
  struct Shard {
    std::shared_ptr<const RefinedBucket> routes;
    std::vector<Segment> segments;
    Tensor received;  // [leaves, own columns], rows padded
    Tensor result;    // [1, own columns]
    std::unique_ptr<PackedExchange> exchange;
    TensorView target = {};  // the results of all
  };
  [[nodiscard]] TensorView rows(const Shard& shard) const {
    return shard.received.view().col_range(0, shard.routes->columns);
  }
  [[nodiscard]] std::unique_ptr<PackedExchange> make_exchange() const {
    return std::make_unique<PackedExchange>(context_, context_.mesh.world(), wire_,
                                            MemoryKind::gradients);
  }

  const Context& context_;
  Leaves leaves_;
  DType wire_;
  std::vector<Shard> shards_;
};

void RefinedExchange::send(std::size_t bucket, ConstTensorView own) {
  Shard& shard = shards_[bucket];
  shard.exchange = make_exchange();
  shard.received = make_rows(context_, wire_, leaves_.count(), shard.routes->columns);
  for (const auto& [rank, route] : shard.routes->owners)
    for (index_t leaf = 0; leaf < leaves_.per_replica; ++leaf)
      for (const auto& [offset, row_count, cols, ld] : route.items)
        shard.exchange->send(rank, rectangle(own.row_range(leaf, 1), offset, row_count, cols, ld));
  for (const auto& [rank, route] : shard.routes->holders) {
    const index_t first = context_.mesh.shape().coord_of(rank).d * leaves_.per_replica;
    for (index_t leaf = 0; leaf < leaves_.per_replica; ++leaf)
      for (const auto& [column, count] : route.items)
        shard.exchange->receive(rank,
                                rows(shard).row_range(first + leaf, 1).col_range(column, count));
  }
  shard.exchange->start();
}

void RefinedExchange::spread(std::size_t bucket) {
  Shard& shard = shards_[bucket];
  shard.received.reset();
  shard.exchange = make_exchange();
  for (const auto& [rank, route] : shard.routes->holders)
    for (const auto& [column, count] : route.items)
      shard.exchange->send(rank, shard.result.view().col_range(column, count));
  for (const auto& [rank, route] : shard.routes->owners)
    for (const auto& [offset, row_count, cols, ld] : route.items)
      shard.exchange->receive(rank, rectangle(shard.target, offset, row_count, cols, ld));
  shard.exchange->start();
}

}  // namespace

std::unique_ptr<LeafExchange> make_refined_exchange(const AggregateSetup& setup, DType wire) {
  return std::make_unique<RefinedExchange>(setup, wire);
}

}  // namespace t3d
