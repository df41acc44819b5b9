// Different cuts: a rank's columns are the parts of the common refinement (train/aggregate/refinement.hpp)
// that fall to it. Parts are rectangles in the shares of their holders; those with one peer are
// packed into one message, and results go back the way they came. Every rank sends and receives
// (d-1)/d of its share each way, as where cuts are equal, but to more peers and through the world.
//
// In a dry run nobody tells his boxes: others are taken to hold what this rank holds, one in each
// replica. Bytes are then right up to the rows that do not divide.
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "train/aggregate/leaf_exchange.hpp"
#include "train/aggregate/refinement.hpp"

namespace t3d {
namespace {

/// boxes[bucket][entry][replica]
using BoxTable = std::vector<std::vector<std::vector<std::vector<HeldBox>>>>;

// Numbers in host memory travel as pairs of 32-bit words. lists[r]: what rank r brought.
std::vector<std::vector<index_t>> gather_lists(Communicator& world, std::vector<index_t> own) {
  const auto ranks = static_cast<std::size_t>(world.size());
  std::vector<index_t> lengths(ranks);
  index_t length = std::ssize(own);
  const std::vector<index_t> ones(ranks, 2);
  world
      .all_gather({&length, DType::i32, 1, 2}, {lengths.data(), DType::i32, 1, 2 * world.size()},
                  ones)
      .wait_host();
  lengths[static_cast<std::size_t>(world.rank())] = length;
  std::vector<index_t> counts;
  for (const index_t of_rank : lengths) counts.push_back(2 * of_rank);
  std::vector<index_t> all(
      static_cast<std::size_t>(std::accumulate(lengths.begin(), lengths.end(), index_t{0})));
  world
      .all_gather({own.data(), DType::i32, 1, 2 * length},
                  {all.data(), DType::i32, 1, 2 * std::ssize(all)}, counts)
      .wait_host();
  std::vector<std::vector<index_t>> lists;
  auto next = all.begin();
  for (const index_t of_rank : lengths) {
    lists.emplace_back(next, next + of_rank);
    next += of_rank;
  }
  lists[static_cast<std::size_t>(world.rank())] = std::move(own);
  return lists;
}

/// For each bucket and entry the number of boxes and the boxes.
std::vector<index_t> own_boxes(const std::vector<ParamBucket*>& buckets) {
  std::vector<index_t> list;
  for (const ParamBucket* bucket : buckets)
    for (const ParamEntry& entry : bucket->entries()) {
      const std::vector<BlockBox> boxes = bucket->shard_boxes(entry);
      list.push_back(std::ssize(boxes));
      for (const auto& [box, offset] : boxes)
        list.insert(list.end(), {box.row0, box.col0, box.rows, box.cols});
    }
  return list;
}

void add_boxes(const std::vector<index_t>& list, int rank, index_t replica, BoxTable& table) {
  auto next = list.begin();
  for (auto& bucket : table)
    for (auto& entry : bucket) {
      T3D_CHECK(next < list.end(), "rank {} has fewer parameters", rank);
      for (index_t left = *next++; left > 0; --left, next += 4)
        entry[static_cast<std::size_t>(replica)].push_back(
            {rank, {next[0], next[1], next[2], next[3]}});
    }
  T3D_CHECK(next == list.end(), "rank {} has more parameters", rank);
}

BoxTable all_boxes(const AggregateSetup& setup) {
  const Context& context = setup.context;
  const MeshShape& shape = context.mesh.shape();
  const auto lists = gather_lists(context.control, own_boxes(setup.buckets));
  BoxTable table;
  for (const ParamBucket* bucket : setup.buckets)
    table.emplace_back(
        bucket->entries().size(),
        std::vector<std::vector<HeldBox>>(static_cast<std::size_t>(shape.extent(Axis::d))));
  const int here = context.control.rank();
  const index_t own_replica = context.coord(Axis::d);
  for (int rank = 0; rank < context.control.size(); ++rank) {
    const Coord coord = shape.coord_of(rank);
    const auto& list = lists[static_cast<std::size_t>(rank)];
    if (!list.empty()) add_boxes(list, rank, coord.d, table);
    const bool stands_in = list.empty() && coord.d != own_replica && coord == Coord{coord.d};
    if (stands_in) add_boxes(lists[static_cast<std::size_t>(here)], rank, coord.d, table);
  }
  return table;
}

class RefinedExchange final : public LeafExchange {
 public:
  RefinedExchange(const AggregateSetup& setup, DType wire)
      : context_(setup.context),
        world_(context_.mesh.world()),
        leaves_(setup.leaves),
        wire_(wire),
        shares_(setup.buckets.size()) {
    const BoxTable table = all_boxes(setup);
    for (std::size_t bucket = 0; bucket < shares_.size(); ++bucket)
      for (std::size_t entry = 0; entry < table[bucket].size(); ++entry)
        plan(*setup.buckets[bucket], setup.buckets[bucket]->entries()[entry], table[bucket][entry],
             setup.groups.of(bucket, entry), shares_[bucket]);
  }

  [[nodiscard]] const std::vector<Segment>& segments(std::size_t bucket) const override {
    return shares_[bucket].segments;
  }
  void send(std::size_t bucket, ConstTensorView own) override;
  void settle() override {
    for (Share& share : shares_) share.messages.wait(context_.queue);
  }
  [[nodiscard]] ConstTensorView arrive(std::size_t bucket) override;
  [[nodiscard]] TensorView result(std::size_t bucket, TensorView) override {
    Share& share = shares_[bucket];
    share.result = context_.make(wire_, 1, share.columns, MemoryKind::gradients);
    return share.result;
  }
  void spread(std::size_t bucket) override;
  void collect(std::size_t bucket, TensorView shard) override;
  void predict(Ledger& ledger) const override;

 private:
  /// A rectangle of this rank's share, `ld` elements from row to row.
  struct Piece {
    index_t offset = 0, rows = 0, cols = 0, ld = 0;
    template <class View>
    [[nodiscard]] View in(View share) const {
      return View(share.at(0, offset), share.dtype, rows, cols, ld);
    }
    [[nodiscard]] index_t count() const { return rows * cols; }
  };
  /// Own columns [first, first + count) that follow on each other in a message too.
  struct Run {
    index_t first = 0, count = 0;
  };
  /// A rank that combines parts of what this one holds, or holds parts of what this one combines:
  /// its message there, or back.
  template <class Item>
  struct Route {
    index_t count = 0;  // elements of a leaf
    std::vector<Item> items;
    Tensor message;
  };
  struct Share {
    index_t columns = 0;  // own ones
    std::vector<Segment> segments;
    std::map<int, Route<Piece>> owners;  // by world rank, this one among them
    std::map<int, Route<Run>> holders;   // likewise
    Tensor received;                     // [leaves, own columns], rows padded
    Tensor result;
    Work messages;
  };

  void plan(const ParamBucket& bucket, const ParamEntry& entry,
            const std::vector<std::vector<HeldBox>>& boxes, index_t group, Share& share) const;
  void plan_own(const CellPart& part, index_t group, Share& share) const;
  [[nodiscard]] bool is_here(int rank) const { return rank == world_.rank(); }

  const Context& context_;
  Communicator& world_;
  Leaves leaves_;
  DType wire_;
  std::vector<Share> shares_;
};

void RefinedExchange::plan(const ParamBucket& bucket, const ParamEntry& entry,
                           const std::vector<std::vector<HeldBox>>& boxes, index_t group,
                           Share& share) const {
  const std::vector<BlockBox> own = bucket.shard_boxes(entry);
  for (const CellPart& part : refine(boxes, world_.rank(), context_.coord(Axis::d))) {
    for (const auto& [box, offset] : own) {
      if (intersect(box, part.box).count() == 0) continue;
      auto& route = share.owners[part.owner];
      route.items.push_back(
          {offset + (part.box.row0 - box.row0) * box.cols + part.box.col0 - box.col0, part.box.rows,
           part.box.cols, box.cols});
      route.count += part.box.count();
    }
    if (is_here(part.owner)) plan_own(part, group, share);
  }
}

void RefinedExchange::plan_own(const CellPart& part, index_t group, Share& share) const {
  const index_t first = share.columns, count = part.box.count();
  share.columns += count;
  if (!share.segments.empty() && share.segments.back().group == group)
    share.segments.back().end += count;
  else
    share.segments.push_back({first, first + count, group});
  for (const int holder : part.holders) {
    auto& route = share.holders[holder];
    if (!route.items.empty() && route.items.back().first + route.items.back().count == first)
      route.items.back().count += count;
    else
      route.items.push_back({first, count});
    route.count += count;
  }
}

void RefinedExchange::send(std::size_t bucket, ConstTensorView own) {
  Share& share = shares_[bucket];
  std::vector<Exchange> messages;
  for (auto& [rank, route] : share.owners) {
    route.message = context_.make(wire_, leaves_.per_replica, route.count, MemoryKind::gradients);
    for (index_t leaf = 0; leaf < leaves_.per_replica; ++leaf) {
      index_t at = 0;
      for (const Piece& piece : route.items) {
        context_.ops.copy(context_.queue, piece.in(own.row_range(leaf, 1)),
                          route.message.view()
                              .row_range(leaf, 1)
                              .col_range(at, piece.count())
                              .reshaped(piece.rows, piece.cols));
        at += piece.count();
      }
    }
    if (!is_here(rank)) messages.push_back({rank, route.message.view(), {}});
  }
  for (auto& [rank, route] : share.holders) {
    if (is_here(rank)) continue;
    route.message = context_.make(wire_, leaves_.per_replica, route.count, MemoryKind::gradients);
    messages.push_back({rank, {}, route.message.view()});
  }
  share.messages = world_.exchange(std::move(messages));
}

ConstTensorView RefinedExchange::arrive(std::size_t bucket) {
  Share& share = shares_[bucket];
  const auto rows = [&] { return share.received.view().col_range(0, share.columns); };
  if (share.received.allocated()) return rows();
  share.messages.wait(context_.queue);
  share.received = make_rows(context_, wire_, leaves_.count(), share.columns);
  for (auto& [rank, route] : share.holders) {
    Tensor& message = is_here(rank) ? share.owners[rank].message : route.message;
    const index_t replica = context_.mesh.shape().coord_of(rank).d;
    const TensorView of_replica =
        rows().row_range(replica * leaves_.per_replica, leaves_.per_replica);
    index_t at = 0;
    for (const auto& [first, count] : route.items) {
      context_.ops.copy(context_.queue, message.view().col_range(at, count),
                        of_replica.col_range(first, count));
      at += count;
    }
    message.reset();
  }
  for (auto& [rank, route] : share.owners) route.message.reset();
  return rows();
}

void RefinedExchange::spread(std::size_t bucket) {
  Share& share = shares_[bucket];
  share.received.reset();
  std::vector<Exchange> messages;
  for (auto& [rank, route] : share.holders) {
    route.message = context_.make(wire_, 1, route.count, MemoryKind::gradients);
    index_t at = 0;
    for (const auto& [first, count] : route.items) {
      context_.ops.copy(context_.queue, share.result.view().col_range(first, count),
                        route.message.view().col_range(at, count));
      at += count;
    }
    if (!is_here(rank)) messages.push_back({rank, route.message.view(), {}});
  }
  share.result.reset();
  for (auto& [rank, route] : share.owners) {
    if (is_here(rank)) continue;
    route.message = context_.make(wire_, 1, route.count, MemoryKind::gradients);
    messages.push_back({rank, {}, route.message.view()});
  }
  share.messages = world_.exchange(std::move(messages));
}

void RefinedExchange::collect(std::size_t bucket, TensorView shard) {
  Share& share = shares_[bucket];
  share.messages.wait(context_.queue);
  for (auto& [rank, route] : share.owners) {
    const Tensor& message = is_here(rank) ? share.holders[rank].message : route.message;
    index_t at = 0;
    for (const Piece& piece : route.items) {
      context_.ops.copy(
          context_.queue,
          message.view().col_range(at, piece.count()).reshaped(piece.rows, piece.cols),
          piece.in(shard));
      at += piece.count();
    }
  }
  for (auto& [rank, route] : share.owners) route.message.reset();
  for (auto& [rank, route] : share.holders) route.message.reset();
}

void RefinedExchange::predict(Ledger& ledger) const {
  for (const Share& share : shares_) {
    index_t out = 0, back = 0;
    for (const auto& [rank, route] : share.owners)
      if (!is_here(rank)) out += route.count * leaves_.per_replica;
    for (const auto& [rank, route] : share.holders)
      if (!is_here(rank)) back += route.count;
    ledger.count(Verb::exchange, world_.axis(), out * size_of(wire_));
    ledger.count(Verb::exchange, world_.axis(), back * size_of(wire_));
  }
}

}  // namespace

std::unique_ptr<LeafExchange> make_refined_exchange(const AggregateSetup& setup, DType wire) {
  return std::make_unique<RefinedExchange>(setup, wire);
}

}  // namespace t3d
