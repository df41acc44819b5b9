// Mesh: who sits where. World ranks <-> coordinates (replica d; i, j, k on the cuboid p x q x r),
// by any permutation. MeshShape is arithmetic only (thousands of simulated ranks in one process);
// Mesh adds this rank's communicators. Replicas may have different cuboids: then everybody sees the
// extents of his own, and there is no axis of equal coordinates across replicas.
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

class Mesh {
 public:
  /// Collective over `world`; world.size() == shape.ranks().
  Mesh(Communicator& world, MeshShape shape);

  [[nodiscard]] const MeshShape& shape() const { return shape_; }
  [[nodiscard]] const Coord& coord() const { return coord_; }
  [[nodiscard]] index_t extent(Axis axis) const { return shape_.extent(axis); }
  [[nodiscard]] Communicator& world() const { return *world_; }
  /// i, j, k; d only where replicas are alike.
  [[nodiscard]] Communicator& along(Axis axis) const;
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
