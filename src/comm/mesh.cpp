#include "comm/mesh.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace t3d {

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, 4> names{"i", "j", "k", "d"};
  return names[static_cast<std::size_t>(axis)];
}

MeshShape::MeshShape(index_t replicas, index_t p, index_t q, index_t r, std::vector<int> place)
    : extents_{p, q, r, replicas}, place_(std::move(place)) {
  T3D_CHECK(replicas >= 1 && p >= 1 && q >= 1 && r >= 1, "mesh {} x ({} x {} x {})", replicas, p, q,
            r);
  const auto n = static_cast<std::size_t>(ranks());
  if (place_.empty()) {
    place_.resize(n);
    std::iota(place_.begin(), place_.end(), 0);
  }
  if (place_.size() != n)
    throw_error(ExitCode::config, "mesh.place lists {} ranks, the mesh has {}", place_.size(), n);
  slot_.assign(n, -1);
  for (std::size_t slot = 0; slot < n; ++slot) {
    const int rank = place_[slot];
    if (rank < 0 || static_cast<std::size_t>(rank) >= n ||
        slot_[static_cast<std::size_t>(rank)] >= 0)
      throw_error(ExitCode::config, "mesh.place is not a permutation of 0..{}: rank {} is {}",
                  n - 1, rank,
                  rank < 0 || static_cast<std::size_t>(rank) >= n ? "outside" : "repeated");
    slot_[static_cast<std::size_t>(rank)] = static_cast<int>(slot);
  }
}

Coord MeshShape::coord_of(int rank) const {
  index_t slot = slot_[static_cast<std::size_t>(rank)];
  Coord coord;
  coord.k = slot % extent(Axis::k);
  slot /= extent(Axis::k);
  coord.j = slot % extent(Axis::j);
  slot /= extent(Axis::j);
  coord.i = slot % extent(Axis::i);
  coord.d = slot / extent(Axis::i);
  return coord;
}

int MeshShape::rank_of(const Coord& c) const {
  const index_t slot =
      ((c.d * extent(Axis::i) + c.i) * extent(Axis::j) + c.j) * extent(Axis::k) + c.k;
  return place_[static_cast<std::size_t>(slot)];
}

std::vector<int> MeshShape::group(int rank, std::vector<Axis> axes) const {
  const Coord own = coord_of(rank);
  index_t n = 1;
  for (const Axis axis : axes) n *= extent(axis);
  std::reverse(axes.begin(), axes.end());  // fastest first
  std::vector<int> members;
  for (index_t at = 0; at < n; ++at) {
    Coord coord = own;
    index_t rest = at;
    for (const Axis axis : axes) {
      index_t& place = axis == Axis::i   ? coord.i
                       : axis == Axis::j ? coord.j
                       : axis == Axis::k ? coord.k
                                         : coord.d;
      place = rest % extent(axis);
      rest /= extent(axis);
    }
    members.push_back(rank_of(coord));
  }
  return members;
}

std::string MeshShape::describe() const {
  const std::string cuboid =
      fmt::format("{} x {} x {}", extent(Axis::i), extent(Axis::j), extent(Axis::k));
  return extent(Axis::d) == 1 ? cuboid : fmt::format("{} x ({})", extent(Axis::d), cuboid);
}

Mesh::Mesh(Communicator& world, MeshShape shape) : shape_(std::move(shape)), world_(&world) {
  T3D_CHECK(world.size() == shape_.ranks(), "{} ranks for a mesh of {}", world.size(),
            shape_.ranks());
  coord_ = shape_.coord_of(world.rank());
  const auto make = [&](const std::vector<Axis>& axes, const char* label) {
    return world.subgroup(shape_.group(world.rank(), axes), label);
  };
  axes_[0] = make({Axis::i}, "i");
  axes_[1] = make({Axis::j}, "j");
  axes_[2] = make({Axis::k}, "k");
  axes_[3] = make({Axis::d}, "d");
  plane_ij_ = make({Axis::i, Axis::j}, "ij");
  plane_ik_ = make({Axis::i, Axis::k}, "ik");
  plane_jk_ = make({Axis::j, Axis::k}, "jk");
  cuboid_ = make({Axis::i, Axis::j, Axis::k}, "cuboid");
}

Communicator& Mesh::along(Axis axis) const { return *axes_[static_cast<std::size_t>(axis)]; }

}  // namespace t3d
