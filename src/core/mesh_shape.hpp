// Who sits where: world ranks <-> coordinates (replica d; i, j, k on the cuboid p x q x r), by any
// permutation. Pure arithmetic. Replicas may have different cuboids: then every rank sees the
// extents of its own, and there is no axis of equal coordinates across replicas.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// i: token axis (p). j, k: output and contraction axis, roles swapped at every matmul (q, r).
enum class Axis : int { i = 0, j = 1, k = 2, d = 3 };
[[nodiscard]] std::string_view name_of(Axis axis);

struct Coord {
  index_t d = 0, i = 0, j = 0, k = 0;
  [[nodiscard]] index_t at(Axis axis) const {
    return axis == Axis::i ? i : axis == Axis::j ? j : axis == Axis::k ? k : d;
  }
  friend bool operator==(const Coord&, const Coord&) = default;
};

/// The groups in which ranks communicate, by the axes along which their members differ: lines,
/// planes, one whole cuboid, equal places of all replicas (d), every rank.
enum class Group : int { i, j, k, ij, ik, jk, cuboid, d, world, count_ };
[[nodiscard]] std::string_view name_of(Group group);

/// p, q, r of one replica.
using Cuboid = std::array<index_t, 3>;

class MeshShape {
 public:
  MeshShape() = default;
  /// `place[slot]` is the world rank in slot ((d*p + i)*q + j)*r + k; empty = identity. Throws a
  /// config Error when it is not a permutation.
  MeshShape(index_t replicas, index_t p, index_t q, index_t r, std::vector<int> place = {});
  /// One cuboid per replica, seen from the first. Slots as above, replica after replica.
  explicit MeshShape(std::vector<Cuboid> cuboids, std::vector<int> place = {});

  /// The same mesh with the extents i, j, k of replica d.
  [[nodiscard]] MeshShape seen_from(index_t d) const;
  [[nodiscard]] index_t extent(Axis axis) const {
    return axis == Axis::d ? static_cast<index_t>(cuboids_.size())
                           : cuboids_[seen_][static_cast<std::size_t>(axis)];
  }
  [[nodiscard]] index_t cuboid_ranks() const { return starts_[seen_ + 1] - starts_[seen_]; }
  [[nodiscard]] index_t ranks() const { return starts_.back(); }
  /// All replicas have the same cuboid.
  [[nodiscard]] bool alike() const;
  [[nodiscard]] Coord coord_of(int rank) const;
  [[nodiscard]] int rank_of(const Coord& coord) const;
  /// World ranks that differ from `rank` only in `axes`, in the order of the axes given (first axis
  /// slowest): the members of the group and their order in it. Axis d only where replicas are
  /// alike.
  [[nodiscard]] std::vector<int> group(int rank, std::vector<Axis> axes) const;
  /// "2 x (2 x 2 x 1)", "2 x 2 x 1" or "2 x 2 x 1 | 4 x 1 x 1"
  [[nodiscard]] std::string describe() const;

 private:
  std::vector<Cuboid> cuboids_{{1, 1, 1}};  // by replica
  std::vector<index_t> starts_{0, 1};       // first slot of each replica, and the end
  std::size_t seen_ = 0;                    // replica
  std::vector<int> place_{0};               // slot -> rank
  std::vector<int> slot_{0};                // rank -> slot
};

}  // namespace t3d
