// Layouts for thousands of simulated ranks in one process: every element has its owners, all of
// them and no others; redistribution plans move each element once, and real ones keep every bit.
#include "tensor3d/layout.hpp"

#include <algorithm>
#include <mutex>

#include "support/catch.hpp"
#include "support/rank_context.hpp"
#include "tensor3d/redistribute.hpp"

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

TEST_CASE("redistribution plans bring each element to each owner once") {
  const MeshShape shape(2, 3, 2, 2, {5,  3,  1,  0,  2,  4,  6,  8,  10, 12, 14, 16,
                                     18, 20, 22, 23, 21, 19, 17, 15, 13, 11, 9,  7});
  const auto all = layouts(shape, 23, 17);
  for (const Layout& from : all)
    for (const Layout& to : all)
      for (int rank = 0; rank < static_cast<int>(shape.ranks()); ++rank) {
        const Box own = to.box(shape, shape.coord_of(rank));
        index_t arrived = 0;
        for (const Transfer& transfer : plan_transfers(shape, from, to, rank)) {
          if (transfer.to != rank) continue;
          CHECK(intersect(transfer.box, own) == transfer.box);
          CHECK(intersect(from.box(shape, shape.coord_of(transfer.from)), transfer.box) ==
                transfer.box);
          CHECK(shape.coord_of(transfer.from).d == shape.coord_of(rank).d);
          arrived += transfer.box.count();
        }
        CHECK(arrived == own.count());
      }
}

TEST_CASE("redistribution there and back keeps every bit, and its bytes are the formula's") {
  for (const Grid& grid :
       {Grid{2, 2, 2, {}, {}, {}}, Grid{3, 1, 2, {}, {}, {}}, Grid{2, 3, 2, {}, {}, {}}}) {
    int wrong = 0;
    std::mutex mutex;
    run_local_ranks(grid.ranks(), [&](Communicator& world) {
      RankContext rank(world, grid.shape(), DType::f32, true);
      const auto all = layouts(grid.shape(), 23, 17);
      const auto value = [](index_t r, index_t c) { return static_cast<double>(r * 17 + c) + 0.5; };
      const auto check = [&](const DistTensor& x) {
        const Box box = x.layout.box(rank.mesh.shape(), rank.mesh.coord());
        for (index_t r = 0; r < box.rows; ++r)
          for (index_t c = 0; c < box.cols; ++c)
            if (get(x.local, r, c) != value(box.row0 + r, box.col0 + c)) {
              const std::lock_guard lock(mutex);
              ++wrong;
            }
      };
      for (const Layout& from : all)
        for (const Layout& to : all) {
          DistTensor x = DistTensor::make(rank.context, from, DType::f32, MemoryKind::activations);
          const Box box = from.box(rank.mesh.shape(), rank.mesh.coord());
          for (index_t r = 0; r < box.rows; ++r)
            for (index_t c = 0; c < box.cols; ++c)
              set(x.local, r, c, value(box.row0 + r, box.col0 + c));
          world.ledger().clear();
          const DistTensor there = redistribute(rank.context, x, to);
          const index_t bytes = world.ledger().bytes_on("cuboid");
          check(there);
          check(redistribute(rank.context, there, from));
          if (bytes != redistribute_bytes(grid.shape(), from, to, world.rank(), DType::f32)) {
            const std::lock_guard lock(mutex);
            ++wrong;
          }
        }
    });
    INFO(grid.text());
    CHECK(wrong == 0);
  }
}
