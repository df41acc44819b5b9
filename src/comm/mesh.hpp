// Mesh: a mesh shape (core/mesh_shape.hpp) with this rank's communicators.
#pragma once
#include <array>
#include <memory>

#include "comm/communicator.hpp"
#include "core/mesh_shape.hpp"

namespace t3d {

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
  [[nodiscard]] Communicator& group(Group group) const;

 private:
  MeshShape shape_;
  Coord coord_;
  Communicator* world_ = nullptr;
  std::array<std::unique_ptr<Communicator>, 4> axes_;
  std::unique_ptr<Communicator> plane_ij_, plane_ik_, plane_jk_, cuboid_;
};

}  // namespace t3d
