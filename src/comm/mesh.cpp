#include "comm/mesh.hpp"

#include "core/error.hpp"

namespace t3d {

Mesh::Mesh(Communicator& world, MeshShape shape) : shape_(std::move(shape)), world_(&world) {
  T3D_CHECK(world.size() == shape_.ranks(), "{} ranks for a mesh of {}", world.size(),
            shape_.ranks());
  coord_ = shape_.coord_of(world.rank());
  shape_ = shape_.seen_from(coord_.d);
  const auto make = [&](const std::vector<Axis>& axes, const char* label) {
    return world.subgroup(shape_.group(world.rank(), axes), label);
  };
  axes_[0] = make({Axis::i}, "i");
  axes_[1] = make({Axis::j}, "j");
  axes_[2] = make({Axis::k}, "k");
  if (shape_.alike()) axes_[3] = make({Axis::d}, "d");
  plane_ij_ = make({Axis::i, Axis::j}, "ij");
  plane_ik_ = make({Axis::i, Axis::k}, "ik");
  plane_jk_ = make({Axis::j, Axis::k}, "jk");
  cuboid_ = make({Axis::i, Axis::j, Axis::k}, "cuboid");
}

Communicator& Mesh::along(Axis axis) const {
  const auto& group = axes_[static_cast<std::size_t>(axis)];
  T3D_CHECK(group != nullptr, "no group along {} in {}: its replicas have different cuboids",
            name_of(axis), shape_.describe());
  return *group;
}

Communicator& Mesh::group(Group group) const {
  switch (group) {
    case Group::i: return along(Axis::i);
    case Group::j: return along(Axis::j);
    case Group::k: return along(Axis::k);
    case Group::d: return along(Axis::d);
    case Group::ij: return plane_ij();
    case Group::ik: return plane_ik();
    case Group::jk: return plane_jk();
    case Group::cuboid: return cuboid();
    case Group::world:
    case Group::count_: break;
  }
  return world();
}

}  // namespace t3d
