#include "tensor3d/redistribute.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace t3d {
namespace {

// The holder of `layout`'s box at `part` nearest to `receiver`: coordinates on axes that do not cut
// the tensor are the receiver's own.
bool sends_to(const Layout& layout, const Coord& sender, const Coord& receiver) {
  for (const Axis axis : {Axis::i, Axis::j, Axis::k})
    if (!layout.cut_by(axis) && sender.at(axis) != receiver.at(axis)) return false;
  return true;
}

TensorView part_of(TensorView whole, const Box& own, const Box& box) {
  return whole.row_range(box.row0 - own.row0, box.rows).col_range(box.col0 - own.col0, box.cols);
}

}  // namespace

std::vector<Transfer> plan_transfers(const MeshShape& shape, const Layout& from, const Layout& to,
                                     int rank) {
  T3D_CHECK(from.rows.length() == to.rows.length() && from.cols.length() == to.cols.length(),
            "redistribution of {} to {}", from.describe(), to.describe());
  std::vector<Transfer> result;
  const std::vector<int> ranks = shape.group(rank, {Axis::i, Axis::j, Axis::k});
  const Coord own = shape.coord_of(rank);
  const auto consider = [&](int sender, const Coord& s, int receiver, const Coord& r) {
    if (!sends_to(from, s, r)) return;
    const Box box = intersect(from.box(shape, s), to.box(shape, r));
    if (box.count() > 0) result.push_back({sender, receiver, box});
  };
  for (const int other : ranks) {
    const Coord coord = shape.coord_of(other);
    consider(rank, own, other, coord);
    if (other != rank) consider(other, coord, rank, own);
  }
  std::sort(result.begin(), result.end(), [](const Transfer& a, const Transfer& b) {
    return std::pair(a.from, a.to) < std::pair(b.from, b.to);
  });
  return result;
}

index_t redistribute_bytes(const MeshShape& shape, const Layout& from, const Layout& to, int rank,
                           DType dtype) {
  index_t bytes = 0;
  for (const Transfer& transfer : plan_transfers(shape, from, to, rank))
    if (transfer.from == rank && transfer.to != rank)
      bytes += transfer.box.count() * size_of(dtype);
  return bytes;
}

DistTensor redistribute(const Context& context, const DistTensor& x, Layout to) {
  const MeshShape& shape = context.mesh.shape();
  const int rank = context.mesh.world().rank();
  const std::vector<int> members = shape.group(rank, {Axis::i, Axis::j, Axis::k});
  const auto index_of = [&](int world_rank) {
    return static_cast<int>(std::find(members.begin(), members.end(), world_rank) -
                            members.begin());
  };
  const DType dtype = x.local.dtype();
  DistTensor result = DistTensor::make(context, std::move(to), dtype, MemoryKind::activations);
  const Box from_box = x.layout.box(shape, context.mesh.coord());
  const Box to_box = result.layout.box(shape, context.mesh.coord());

  std::vector<Tensor> buffers;
  std::vector<Exchange> messages;
  std::vector<std::pair<std::size_t, Box>> arrivals;
  for (const Transfer& transfer : plan_transfers(shape, x.layout, result.layout, rank)) {
    const Box& box = transfer.box;
    if (transfer.from == rank && transfer.to == rank) {
      context.ops.copy(context.queue, part_of(x.local, from_box, box),
                       part_of(result.local, to_box, box));
      continue;
    }
    buffers.push_back(context.make(dtype, box.rows, box.cols, MemoryKind::workspace));
    if (transfer.from == rank) {
      context.ops.copy(context.queue, part_of(x.local, from_box, box), buffers.back());
      messages.push_back({index_of(transfer.to), buffers.back().view(), {}});
    } else {
      messages.push_back({index_of(transfer.from), {}, buffers.back().view()});
      arrivals.emplace_back(buffers.size() - 1, box);
    }
  }
  context.mesh.cuboid().exchange(std::move(messages)).wait(context.queue);
  for (const auto& [buffer, box] : arrivals)
    context.ops.copy(context.queue, buffers[buffer], part_of(result.local, to_box, box));
  return result;
}

}  // namespace t3d
