// Context: what every distributed operation needs, and the DistTensor that they hand on.
#pragma once
#include <functional>
#include <string>
#include <utility>

#include "comm/mesh.hpp"
#include "core/phase_clock.hpp"
#include "device/device.hpp"
#include "ops/ops.hpp"
#include "tensor3d/layout.hpp"

namespace t3d {

/// One rank's machinery. Shared by reference; outlives the layers built on it.
struct Context {
  Device& device;
  Ops& ops;
  Queue& queue;
  const Mesh& mesh;       // its communicators carry device memory
  Communicator& control;  // the whole world, for numbers in host memory
  PhaseClock& clock;
  DType activation = DType::f32;
  /// Partial sums of activations travel in fp32 (else in the activation's dtype).
  bool reduce_in_fp32 = false;
  /// Gathered inputs / weights stay until backward (else they are gathered again).
  bool keep_inputs = true, keep_weights = true;
  /// Logits at a time: enough for efficient matmuls and few messages, small beside the activations
  /// of a block. Every chunk adds to the whole gradient of the head's weight.
  index_t logits_bytes = index_t{128} << 20;

  [[nodiscard]] DType accumulator() const { return accumulator_of(activation); }
  [[nodiscard]] index_t coord(Axis axis) const { return mesh.coord().at(axis); }
  [[nodiscard]] index_t extent(Axis axis) const { return mesh.extent(axis); }
  [[nodiscard]] Tensor make(DType dtype, index_t rows, index_t cols, MemoryKind kind) const {
    return {device, dtype, rows, cols, kind};
  }
  /// Dtype in which partial sums over `ranks` ranks are reduced.
  [[nodiscard]] DType reduce_dtype() const { return reduce_in_fp32 ? accumulator() : activation; }
};

/// A distributed matrix: its layout and this rank's box, contiguous.
struct DistTensor {
  Layout layout;
  Tensor local;

  static DistTensor make(const Context& context, Layout layout, DType dtype, MemoryKind kind) {
    const Box box = layout.box(context.mesh.shape(), context.mesh.coord());
    return {std::move(layout), context.make(dtype, box.rows, box.cols, kind)};
  }
};

}  // namespace t3d
