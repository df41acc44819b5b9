// Layouts for thousands of simulated ranks in one process: every element has its owners, all of
// them and no others; routes between layouts bring each element once, and real messages keep every
// bit.
#include "tensor3d/layout.hpp"

#include <algorithm>
#include <mutex>

#include "core/route.hpp"
#include "support/catch.hpp"
#include "support/rank_context.hpp"
#include "tensor3d/packed_exchange.hpp"

using namespace t3d;
using namespace t3d::test;

namespace {

Partition uneven(const char* name, index_t length, index_t parts) {
  std::vector<double> weights;
  for (index_t part = 0; part < parts; ++part)
    weights.push_back(static_cast<double>(random_bits({3, 1}, part) % 5));  // zeros too
  weights.front() = 1;
  return Partition::weighted(name, length, weights);
}

// How often each element is held, over all ranks of the cuboid.
std::vector<int> holders(const MeshShape& shape, const Layout& layout) {
  const index_t columns = layout.cols.length();
  std::vector<int> held(static_cast<std::size_t>(layout.rows.length() * columns), 0);
  for (int rank = 0; rank < static_cast<int>(shape.ranks()); ++rank) {
    const Box box = layout.box(shape, shape.coord_of(rank));
    for (index_t r = 0; r < box.rows; ++r)
      for (index_t c = 0; c < box.cols; ++c)
        ++held[static_cast<std::size_t>((box.row0 + r) * columns + box.col0 + c)];
  }
  return held;
}

std::vector<Layout> layouts(const MeshShape& shape, index_t rows, index_t cols) {
  const auto over = [&](Axis axis, const char* name, index_t n) {
    return uneven(name, n, shape.extent(axis));
  };
  return {{cut(over(Axis::i, "t", rows), Axis::i, Axis::j), cut(over(Axis::k, "h", cols), Axis::k)},
          {cut(over(Axis::i, "t", rows), Axis::i, Axis::k), cut(over(Axis::j, "f", cols), Axis::j)},
          {cut(over(Axis::i, "t", rows), Axis::i), cut(over(Axis::j, "f", cols), Axis::j, Axis::k)},
          {cut(over(Axis::k, "h", rows), Axis::k), cut(over(Axis::j, "f", cols), Axis::j)},
          {whole("t", rows), cut(over(Axis::k, "h", cols), Axis::k)}};
}

}  // namespace

TEST_CASE("every element has exactly its owners on 4096 simulated ranks") {
  for (const MeshShape& shape :
       {MeshShape(1, 16, 16, 16), MeshShape(1, 64, 8, 8), MeshShape(1, 4096, 1, 1),
        MeshShape(1, 7, 13, 11), MeshShape(1, 1, 64, 64)}) {
    for (const Layout& layout : layouts(shape, 97, 61)) {
      index_t copies = shape.cuboid_ranks();
      for (const Axis axis : {Axis::i, Axis::j, Axis::k})
        if (layout.cut_by(axis)) copies /= shape.extent(axis);
      INFO(shape.describe() << " " << layout.describe());
      const std::vector<int> held = holders(shape, layout);
      CHECK(std::all_of(held.begin(), held.end(), [&](int n) { return n == copies; }));
    }
  }
}

TEST_CASE("equality of layouts sees widths, axes and lattices") {
  const Partition even = Partition::even("t", 12, 2);
  const Layout a{cut(even, Axis::i, Axis::j), cut(even, Axis::k)};
  CHECK(a == Layout{cut(even, Axis::i, Axis::j), cut(even, Axis::k)});
  CHECK_FALSE(a == Layout{cut(even, Axis::i, Axis::k), cut(even, Axis::j)});
  CHECK_FALSE(a == Layout{cut(even, Axis::i, Axis::j, 2), cut(even, Axis::k)});
  CHECK_FALSE(a == Layout{cut(Partition::from_offsets("t", {0, 5, 12}), Axis::i, Axis::j),
                          cut(even, Axis::k)});
  CHECK(a.describe() == "[12 x 12 | i,j | k]");
}

namespace {

/// How a rank keeps its box of a layout in a flat buffer: the lower rows first, then the upper
/// ones.
std::vector<PlacedBox> kept(const MeshShape& shape, const Layout& layout, const Coord& coord) {
  const Box box = layout.box(shape, coord);
  const index_t upper = box.rows / 2, lower = box.rows - upper;
  return {{{box.row0 + upper, box.col0, lower, box.cols}, 0},
          {{box.row0, box.col0, upper, box.cols}, lower * box.cols}};
}

index_t count_of(const std::vector<PlacedBox>& boxes) {
  index_t count = 0;
  for (const PlacedBox& piece : boxes) count += piece.box.count();
  return count;
}

double value_at(index_t row, index_t col) { return static_cast<double>(row * 17 + col) + 0.5; }

/// Calls visit(place in the buffer, value of the element there).
template <class Visit>
void for_each_kept(const std::vector<PlacedBox>& boxes, Visit&& visit) {
  for (const auto& [box, offset] : boxes)
    for (index_t r = 0; r < box.rows; ++r)
      for (index_t c = 0; c < box.cols; ++c)
        visit(offset + r * box.cols + c, value_at(box.row0 + r, box.col0 + c));
}

/// Of the ranks that hold the same, a receiver takes what is nearest: coordinates on axes that do
/// not cut the tensor are its own.
bool sends_to(const Layout& layout, const Coord& sender, const Coord& receiver) {
  if (sender.d != receiver.d) return false;
  for (const Axis axis : {Axis::i, Axis::j, Axis::k})
    if (!layout.cut_by(axis) && sender.at(axis) != receiver.at(axis)) return false;
  return true;
}

constexpr Box kWhole{0, 0, 23, 17};

/// The elements of `clip` of a tensor in layout `from`, in layout `to`.
Tensor move(const RankContext& rank, const Layout& from, const Layout& to, const Box& clip,
            const Tensor& buffer, index_t& bytes) {
  const MeshShape& shape = rank.mesh.shape();
  const Coord own = rank.mesh.coord();
  const auto held = kept(shape, from, own), wanted = kept(shape, to, own);
  Tensor result = rank.context.make(DType::f32, 1, count_of(wanted), MemoryKind::activations);
  rank.ops->fill(*rank.queue, result, -1);
  PackedExchange exchange(rank.context, rank.mesh.cuboid(), DType::f32, MemoryKind::workspace);
  for (int peer = 0; peer < rank.mesh.cuboid().size(); ++peer) {
    const Coord coord = shape.coord_of(peer);
    if (sends_to(from, own, coord))
      for (const RoutePiece& piece : route(held, kept(shape, to, coord), clip)) {
        if (peer != rank.mesh.cuboid().rank()) bytes += piece.rows * piece.cols * 4;
        exchange.send(peer, rectangle(ConstTensorView(buffer.view()), piece.from_offset, piece.rows,
                                      piece.cols, piece.from_ld));
      }
    if (sends_to(from, coord, own))
      for (const RoutePiece& piece : route(kept(shape, from, coord), wanted, clip))
        exchange.receive(
            peer, rectangle(result.view(), piece.to_offset, piece.rows, piece.cols, piece.to_ld));
  }
  exchange.start();
  exchange.finish();
  return result;
}

}  // namespace

TEST_CASE("routes bring each element once to where it belongs") {
  const MeshShape shape(2, 3, 2, 2, {5,  3,  1,  0,  2,  4,  6,  8,  10, 12, 14, 16,
                                     18, 20, 22, 23, 21, 19, 17, 15, 13, 11, 9,  7});
  const auto all = layouts(shape, kWhole.rows, kWhole.cols);
  for (const Layout& from : all)
    for (const Layout& to : all)
      for (int receiver = 0; receiver < static_cast<int>(shape.ranks()); ++receiver) {
        const Coord own = shape.coord_of(receiver);
        const auto wanted = kept(shape, to, own);
        std::vector<double> arrived(static_cast<std::size_t>(count_of(wanted)), 0);
        for (int sender = 0; sender < static_cast<int>(shape.ranks()); ++sender) {
          const Coord coord = shape.coord_of(sender);
          if (!sends_to(from, coord, own)) continue;
          const auto held = kept(shape, from, coord);
          std::vector<double> buffer(static_cast<std::size_t>(count_of(held)));
          for_each_kept(held, [&](index_t at, double value) {
            buffer[static_cast<std::size_t>(at)] = value;
          });
          for (const RoutePiece& piece : route(held, wanted, kWhole))
            for (index_t r = 0; r < piece.rows; ++r)
              for (index_t c = 0; c < piece.cols; ++c)  // twice would be twice the value
                arrived[static_cast<std::size_t>(piece.to_offset + r * piece.to_ld + c)] +=
                    buffer[static_cast<std::size_t>(piece.from_offset + r * piece.from_ld + c)];
        }
        for_each_kept(wanted, [&](index_t at, double value) {
          REQUIRE(arrived[static_cast<std::size_t>(at)] == value);
        });
      }
}

TEST_CASE("a tensor moved to another layout and back keeps every bit, its bytes are the routes'") {
  for (const Grid& grid :
       {Grid{2, 2, 2, {}, {}, {}}, Grid{3, 1, 2, {}, {}, {}}, Grid{2, 3, 2, {}, {}, {}}}) {
    int wrong = 0;
    std::mutex mutex;
    run_local_ranks(grid.ranks(), [&](Communicator& world) {
      RankContext rank(world, grid.shape(), DType::f32, true);
      const auto expect = [&](bool right) {
        const std::lock_guard lock(mutex);
        wrong += right ? 0 : 1;
      };
      const auto all = layouts(grid.shape(), kWhole.rows, kWhole.cols);
      for (const Layout& from : all)
        for (const Layout& to : all) {
          const auto held = kept(grid.shape(), from, rank.mesh.coord());
          Tensor x = rank.context.make(DType::f32, 1, count_of(held), MemoryKind::activations);
          for_each_kept(held, [&](index_t at, double value) { set(x, 0, at, value); });
          world.ledger().clear();
          index_t bytes = 0;
          const Tensor there = move(rank, from, to, kWhole, x, bytes);
          const Tensor back = move(rank, to, from, kWhole, there, bytes);
          expect(world.ledger().bytes_on("cuboid") == bytes);
          for_each_kept(kept(grid.shape(), to, rank.mesh.coord()),
                        [&](index_t at, double value) { expect(get(there, 0, at) == value); });
          for_each_kept(held, [&](index_t at, double value) { expect(get(back, 0, at) == value); });
        }
    });
    INFO(grid.text());
    CHECK(wrong == 0);
  }
}

TEST_CASE("a route moves what is asked for and nothing else") {
  const Grid grid{2, 2, 1, {}, {}, {}};
  run_local_ranks(grid.ranks(), [&](Communicator& world) {
    RankContext rank(world, grid.shape(), DType::f32, true);
    const auto all = layouts(grid.shape(), kWhole.rows, kWhole.cols);
    const Box strip{7, 3, 9, 5};
    const auto held = kept(grid.shape(), all[0], rank.mesh.coord());
    Tensor x = rank.context.make(DType::f32, 1, count_of(held), MemoryKind::activations);
    for_each_kept(held, [&](index_t at, double value) { set(x, 0, at, value); });
    index_t bytes = 0;
    const Tensor y = move(rank, all[0], all[1], strip, x, bytes);
    for (const auto& [box, offset] : kept(grid.shape(), all[1], rank.mesh.coord()))
      for (index_t r = 0; r < box.rows; ++r)
        for (index_t c = 0; c < box.cols; ++c) {
          const index_t row = box.row0 + r, col = box.col0 + c;
          const bool moved = !intersect({row, col, 1, 1}, strip).empty();
          if (get(y, 0, offset + r * box.cols + c) != (moved ? value_at(row, col) : -1))
            throw std::runtime_error("a wrong element at " + describe({row, col, 1, 1}));
        }
  });
}
