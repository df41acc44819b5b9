// Mesh: who sits where. World ranks <-> coordinates (replica d; i, j, k on the cuboid p x q x r),
// by any permutation. MeshShape is arithmetic only (thousands of simulated ranks in one process);
// Mesh adds this rank's communicators.
#pragma once
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
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

class MeshShape {
 public:
  MeshShape() = default;
  /// `place[slot]` is the world rank in slot ((d*p + i)*q + j)*r + k; empty = identity. Throws a
  /// config Error when it is not a permutation.
  MeshShape(index_t replicas, index_t p, index_t q, index_t r, std::vector<int> place = {});

  [[nodiscard]] index_t extent(Axis axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  [[nodiscard]] index_t cuboid_ranks() const { return extents_[0] * extents_[1] * extents_[2]; }
  [[nodiscard]] index_t ranks() const { return cuboid_ranks() * extents_[3]; }
  [[nodiscard]] Coord coord_of(int rank) const;
  [[nodiscard]] int rank_of(const Coord& coord) const;
  /// World ranks that differ from `rank` only in `axes`, in the order of the axes given (first axis
  /// slowest): the members of the group and their order in it.
  [[nodiscard]] std::vector<int> group(int rank, std::vector<Axis> axes) const;
  /// "2 x (2 x 2 x 1)" or "2 x 2 x 1"
  [[nodiscard]] std::string describe() const;

 private:
  std::array<index_t, 4> extents_{1, 1, 1, 1};  // i, j, k, d
  std::vector<int> place_;                      // slot -> rank
  std::vector<int> slot_;                       // rank -> slot
};

class Mesh {
 public:
  /// Collective over `world`; world.size() == shape.ranks().
  Mesh(Communicator& world, MeshShape shape);

  [[nodiscard]] const MeshShape& shape() const { return shape_; }
  [[nodiscard]] const Coord& coord() const { return coord_; }
  [[nodiscard]] index_t extent(Axis axis) const { return shape_.extent(axis); }
  [[nodiscard]] Communicator& world() const { return *world_; }
  [[nodiscard]] Communicator& along(Axis axis) const;  // i, j, k, d
  /// Group over i (slower) and j (faster) with k and d fixed: holders of one hidden slice.
  [[nodiscard]] Communicator& plane_ij() const { return *plane_ij_; }
  /// Group over i (slower) and k (faster) with j and d fixed: holders of one slice of heads or ffn.
  [[nodiscard]] Communicator& plane_ik() const { return *plane_ik_; }
  /// Group over j (slower) and k (faster): the slab, holders of one set of rows.
  [[nodiscard]] Communicator& plane_jk() const { return *plane_jk_; }
  [[nodiscard]] Communicator& cuboid() const { return *cuboid_; }

 private:
  MeshShape shape_;
  Coord coord_;
  Communicator* world_ = nullptr;
  std::array<std::unique_ptr<Communicator>, 4> axes_;
  std::unique_ptr<Communicator> plane_ij_, plane_ik_, plane_jk_, cuboid_;
};

}  // namespace t3d
