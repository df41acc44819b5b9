// MeshShape: coordinates are a bijection and groups cut the ranks, for thousands of ranks.
#include "comm/mesh.hpp"

#include <algorithm>
#include <numeric>

#include "core/random.hpp"
#include "support/catch.hpp"

namespace t3d {
namespace {

std::vector<int> shuffled(index_t ranks, std::uint64_t seed) {
  std::vector<int> place;
  for (index_t slot = 0; slot < ranks; ++slot)
    place.push_back(static_cast<int>(permute({seed, 0}, slot, ranks)));
  return place;
}

// The groups of all ranks over `axes`: equal for all members, disjoint otherwise, in coordinate
// order.
void check_groups(const MeshShape& shape, const std::vector<Axis>& axes) {
  index_t size = 1;
  for (const Axis axis : axes) size *= shape.extent(axis);
  std::vector<int> seen(static_cast<std::size_t>(shape.ranks()), 0);
  for (int rank = 0; rank < shape.ranks(); ++rank) {
    const auto members = shape.group(rank, axes);
    REQUIRE(static_cast<index_t>(members.size()) == size);
    REQUIRE(std::count(members.begin(), members.end(), rank) == 1);
    if (members.front() != rank) continue;  // one rank speaks for its group
    for (std::size_t at = 0; at < members.size(); ++at) {
      ++seen[static_cast<std::size_t>(members[at])];
      REQUIRE(shape.group(members[at], axes) == members);
      auto rest = static_cast<index_t>(at);
      for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
        REQUIRE(shape.coord_of(members[at]).at(*axis) == rest % shape.extent(*axis));
        rest /= shape.extent(*axis);
      }
      for (const Axis axis : {Axis::i, Axis::j, Axis::k, Axis::d})
        if (std::find(axes.begin(), axes.end(), axis) == axes.end())
          REQUIRE(shape.coord_of(members[at]).at(axis) == shape.coord_of(rank).at(axis));
    }
  }
  REQUIRE(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
}

TEST_CASE("ranks and coordinates are a bijection on 4096 ranks under any placement", "[mesh]") {
  for (const bool shuffle : {false, true}) {
    const MeshShape shape(4, 16, 8, 8, shuffle ? shuffled(4096, 5) : std::vector<int>());
    REQUIRE(shape.ranks() == 4096);
    for (int rank = 0; rank < 4096; ++rank) REQUIRE(shape.rank_of(shape.coord_of(rank)) == rank);
    for (const Axis axis : {Axis::i, Axis::j, Axis::k, Axis::d}) check_groups(shape, {axis});
    check_groups(shape, {Axis::i, Axis::j});
    check_groups(shape, {Axis::j, Axis::i});
  }
}

TEST_CASE("odd meshes work like round ones", "[mesh]") {
  const MeshShape shape(3, 5, 1, 7, shuffled(105, 9));
  for (int rank = 0; rank < 105; ++rank) REQUIRE(shape.rank_of(shape.coord_of(rank)) == rank);
  for (const Axis axis : {Axis::i, Axis::j, Axis::k, Axis::d}) check_groups(shape, {axis});
  check_groups(shape, {Axis::i, Axis::j, Axis::k});
  CHECK(shape.describe() == "3 x (5 x 1 x 7)");
  CHECK(MeshShape(1, 2, 2, 1).describe() == "2 x 2 x 1");
}

TEST_CASE("replicas may have different cuboids", "[mesh]") {
  const MeshShape shape({{5, 1, 7}, {1, 1, 1}, {2, 3, 4}}, shuffled(60, 9));
  CHECK(shape.ranks() == 60);
  CHECK_FALSE(shape.alike());
  CHECK(shape.describe() == "5 x 1 x 7 | 1 x 1 x 1 | 2 x 3 x 4");
  std::vector<index_t> ranks_of(3, 0);
  for (int rank = 0; rank < 60; ++rank) {
    const Coord coord = shape.coord_of(rank);
    const MeshShape seen = shape.seen_from(coord.d);
    ++ranks_of[static_cast<std::size_t>(coord.d)];
    REQUIRE(shape.rank_of(coord) == rank);
    REQUIRE(seen.coord_of(rank) == coord);
    index_t size = 1;
    for (const Axis axis : {Axis::i, Axis::j, Axis::k}) {
      REQUIRE(coord.at(axis) < seen.extent(axis));
      const auto line = shape.group(rank, {axis});
      REQUIRE(std::ssize(line) == seen.extent(axis));
      REQUIRE(line[static_cast<std::size_t>(coord.at(axis))] == rank);
      size *= seen.extent(axis);
    }
    const auto cuboid = seen.group(rank, {Axis::i, Axis::j, Axis::k});
    REQUIRE(std::ssize(cuboid) == size);
    REQUIRE(seen.cuboid_ranks() == size);
    for (const int member : cuboid) REQUIRE(shape.coord_of(member).d == coord.d);
    REQUIRE_THROWS_WITH(seen.group(rank, {Axis::d}), test::contains("different cuboids"));
  }
  CHECK(ranks_of == std::vector<index_t>{35, 1, 24});
  CHECK(shape.extent(Axis::d) == 3);
  CHECK(MeshShape({{2, 1, 2}, {2, 1, 2}}).alike());
  CHECK(MeshShape({{2, 1, 2}, {2, 1, 2}}).describe() == "2 x (2 x 1 x 2)");
}

TEST_CASE("ranks of different cuboids have the groups of their own") {
  const MeshShape shape({{1, 2, 2}, {3, 1, 1}}, shuffled(7, 4));
  run_local_ranks(7, [&](Communicator& world) {
    const Mesh mesh(world, shape);
    const bool first = mesh.coord().d == 0;
    T3D_CHECK(mesh.extent(Axis::i) == (first ? 1 : 3), "p {}", mesh.extent(Axis::i));
    T3D_CHECK(mesh.cuboid().size() == (first ? 4 : 3), "cuboid of {}", mesh.cuboid().size());
    std::int32_t sum = world.rank();
    mesh.cuboid().all_reduce({&sum, DType::i32, 1, 1}, ReduceOp::sum).wait_host();
    const auto members = shape.group(world.rank(), {Axis::i, Axis::j, Axis::k});
    T3D_CHECK(sum == std::accumulate(members.begin(), members.end(), 0), "sum {}", sum);
    bool refused = false;
    try {
      (void)mesh.along(Axis::d);
    } catch (const Error&) {
      refused = true;
    }
    T3D_CHECK(refused, "a group along d");
  });
}

TEST_CASE("k is the fastest axis of the identity", "[mesh]") {
  const MeshShape shape(2, 2, 3, 4);
  CHECK(shape.coord_of(1) == Coord{0, 0, 0, 1});
  CHECK(shape.coord_of(4) == Coord{0, 0, 1, 0});
  CHECK(shape.coord_of(12) == Coord{0, 1, 0, 0});
  CHECK(shape.coord_of(24) == Coord{1, 0, 0, 0});
}

TEST_CASE("a placement that is no permutation is refused", "[mesh]") {
  const auto fails = [](std::vector<int> place) {
    try {
      const MeshShape shape(1, 2, 1, 1, std::move(place));
    } catch (const Error& error) {
      return error.code() == ExitCode::config;
    }
    return false;
  };
  CHECK(fails({0, 0}));
  CHECK(fails({0, 2}));
  CHECK(fails({0, -1}));
  CHECK(fails({0}));
  CHECK_FALSE(fails({1, 0}));
}

TEST_CASE("a mesh gives every rank its groups", "[mesh]") {
  const MeshShape shape(2, 1, 2, 3, shuffled(12, 4));
  run_local_ranks(12, [&](Communicator& world) {
    const Mesh mesh(world, shape);
    for (const Axis axis : {Axis::i, Axis::j, Axis::k, Axis::d}) {
      Communicator& line = mesh.along(axis);
      T3D_CHECK(line.size() == shape.extent(axis), "size of {}", name_of(axis));
      T3D_CHECK(line.rank() == mesh.coord().at(axis), "rank along {}", name_of(axis));
      T3D_CHECK(line.axis() == name_of(axis), "label {}", line.axis());
      std::int32_t sum = world.rank();
      line.all_reduce({&sum, DType::i32, 1, 1}, ReduceOp::sum).wait_host();
      const auto members = shape.group(world.rank(), {axis});
      T3D_CHECK(sum == std::accumulate(members.begin(), members.end(), 0), "sum {}", sum);
    }
    T3D_CHECK(mesh.plane_ij().size() == 2 && mesh.cuboid().size() == 6, "planes");
  });
}

}  // namespace
}  // namespace t3d
