#include "core/mesh_shape.hpp"

#include <algorithm>
#include <numeric>

#include "core/error.hpp"

namespace t3d {

std::string_view name_of(Axis axis) {
  constexpr std::array<std::string_view, 4> names{"i", "j", "k", "d"};
  return names[static_cast<std::size_t>(axis)];
}

std::string_view name_of(Group group) {
  constexpr std::array<std::string_view, static_cast<std::size_t>(Group::count_)> names{
      "i", "j", "k", "ij", "ik", "jk", "cuboid", "d", "world"};
  return names[static_cast<std::size_t>(group)];
}

MeshShape::MeshShape(index_t replicas, index_t p, index_t q, index_t r, std::vector<int> place)
    : MeshShape(std::vector<Cuboid>(static_cast<std::size_t>(std::max(replicas, index_t{0})),
                                    Cuboid{p, q, r}),
                std::move(place)) {}

MeshShape::MeshShape(std::vector<Cuboid> cuboids, std::vector<int> place)
    : cuboids_(std::move(cuboids)), starts_{0}, place_(std::move(place)) {
  T3D_CHECK(!cuboids_.empty(), "a mesh without replicas");
  for (const auto& [p, q, r] : cuboids_) {
    T3D_CHECK(p >= 1 && q >= 1 && r >= 1, "cuboid {} x {} x {}", p, q, r);
    starts_.push_back(starts_.back() + p * q * r);
  }
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

MeshShape MeshShape::seen_from(index_t d) const {
  T3D_CHECK(d >= 0 && d < extent(Axis::d), "replica {} of {}", d, extent(Axis::d));
  MeshShape result = *this;
  result.seen_ = static_cast<std::size_t>(d);
  return result;
}

bool MeshShape::alike() const {
  return std::all_of(cuboids_.begin(), cuboids_.end(),
                     [&](const Cuboid& cuboid) { return cuboid == cuboids_.front(); });
}

Coord MeshShape::coord_of(int rank) const {
  const index_t slot = slot_[static_cast<std::size_t>(rank)];
  const auto replica = std::upper_bound(starts_.begin(), starts_.end(), slot) - 1;
  Coord coord;
  coord.d = replica - starts_.begin();
  const auto& [p, q, r] = cuboids_[static_cast<std::size_t>(coord.d)];
  const index_t within = slot - *replica;
  coord.k = within % r;
  coord.j = within / r % q;
  coord.i = within / r / q;
  return coord;
}

int MeshShape::rank_of(const Coord& c) const {
  const auto d = static_cast<std::size_t>(c.d);
  const auto& [p, q, r] = cuboids_[d];
  return place_[static_cast<std::size_t>(starts_[d] + (c.i * q + c.j) * r + c.k)];
}

std::vector<int> MeshShape::group(int rank, std::vector<Axis> axes) const {
  const Coord own = coord_of(rank);
  T3D_CHECK(alike() || std::find(axes.begin(), axes.end(), Axis::d) == axes.end(),
            "no axis d in {}: its replicas have different cuboids", describe());
  const auto extent_there = [&](Axis axis) {
    return axis == Axis::d
               ? extent(axis)
               : cuboids_[static_cast<std::size_t>(own.d)][static_cast<std::size_t>(axis)];
  };
  index_t n = 1;
  for (const Axis axis : axes) n *= extent_there(axis);
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
      place = rest % extent_there(axis);
      rest /= extent_there(axis);
    }
    members.push_back(rank_of(coord));
  }
  return members;
}

std::string MeshShape::describe() const {
  const auto text = [](const Cuboid& c) { return fmt::format("{} x {} x {}", c[0], c[1], c[2]); };
  if (extent(Axis::d) == 1) return text(cuboids_.front());
  if (alike()) return fmt::format("{} x ({})", extent(Axis::d), text(cuboids_.front()));
  std::string all;
  for (const Cuboid& cuboid : cuboids_) all += (all.empty() ? "" : " | ") + text(cuboid);
  return all;
}

}  // namespace t3d
