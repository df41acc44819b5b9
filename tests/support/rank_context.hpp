// One simulated rank's machinery for tests that run a whole cuboid as threads of one process.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "comm/mesh.hpp"
#include "core/phase_clock.hpp"
#include "tensor3d/context.hpp"

namespace t3d::test {

struct RankContext {
  RankContext(Communicator& world, const MeshShape& shape, DType activation, bool reference)
      : device(make_cpu_device()),
        ops(reference ? make_reference_ops() : make_cpu_ops(1)),
        queue(device->make_queue()),
        mesh(world, shape),
        context{*device, *ops, *queue, mesh, world, clock, activation, false, true, true} {
    queue->set_poll([&world] { world.progress(); });
  }
  std::unique_ptr<Device> device;
  std::unique_ptr<Ops> ops;
  std::unique_ptr<Queue> queue;
  Mesh mesh;
  PhaseClock clock;
  Context context;
};

/// Element (row, col) of host memory as a double.
inline double get(ConstTensorView view, index_t row, index_t col) {
  const void* at = view.at(row, col);
  switch (view.dtype) {
    case DType::f64: return *static_cast<const double*>(at);
    case DType::f32: return static_cast<double>(*static_cast<const float*>(at));
    case DType::bf16: return static_cast<double>(*static_cast<const bf16*>(at));
    case DType::f16: return static_cast<double>(*static_cast<const f16*>(at));
    case DType::i32: return static_cast<double>(*static_cast<const std::int32_t*>(at));
  }
  return 0;
}

inline void set(TensorView view, index_t row, index_t col, double value) {
  void* at = view.at(row, col);
  switch (view.dtype) {
    case DType::f64: *static_cast<double*>(at) = value; break;
    case DType::f32: *static_cast<float*>(at) = static_cast<float>(value); break;
    case DType::bf16: *static_cast<bf16*>(at) = bf16(value); break;
    case DType::f16: *static_cast<f16*>(at) = f16(value); break;
    case DType::i32: *static_cast<std::int32_t*>(at) = static_cast<std::int32_t>(value); break;
  }
}

/// A cuboid with, where not empty, explicit widths per axis.
struct Grid {
  index_t p = 1, q = 1, r = 1;
  std::vector<double> tokens, outputs, contractions;
  [[nodiscard]] MeshShape shape(index_t replicas = 1) const { return {replicas, p, q, r}; }
  [[nodiscard]] int ranks() const { return static_cast<int>(p * q * r); }
  [[nodiscard]] std::string text() const {
    return fmt::format("{}x{}x{}{}", p, q, r, tokens.empty() ? "" : " uneven");
  }
};

/// The cuboids of the acceptance table, even and uneven, with an empty part among them.
inline std::vector<Grid> all_grids() {
  return {{1, 1, 1, {}, {}, {}},
          {2, 1, 1, {}, {}, {}},
          {1, 2, 1, {}, {}, {}},
          {1, 1, 2, {}, {}, {}},
          {2, 2, 2, {}, {}, {}},
          {3, 1, 2, {}, {}, {}},
          {2, 3, 1, {}, {}, {}},
          {2, 3, 2, {}, {}, {}},
          {2, 2, 2, {3, 1}, {1, 2}, {5, 3}},
          {3, 1, 2, {2, 0, 1}, {1}, {1, 4}},
          {2, 3, 1, {1, 3}, {2, 0, 1}, {1}},
          {2, 3, 2, {1, 4}, {3, 1, 2}, {2, 1}},
          {1, 1, 2, {1}, {1}, {0, 1}}};
}

}  // namespace t3d::test
