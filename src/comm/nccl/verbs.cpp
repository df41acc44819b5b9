#include "comm/nccl/verbs.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "comm/cost.hpp"
#include "comm/nccl/ordered_sum.hpp"

namespace t3d::nccl {
namespace {

// Padded slots move up to this much more than the parts; beyond it exact messages are cheaper.
constexpr double kPaddedAtMost = 1.2;

// Slots begin where the widest loads of kernels may begin.
constexpr index_t kSlotAlignment = 16;

void copy(const Lane& lane, void* to, const void* from, index_t bytes) {
  if (bytes == 0 || to == from) return;
  cuda::check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                              lane.queue.stream()),
              "a copy on the GPU");
}

void send(const Lane& lane, int peer, const void* data, index_t bytes) {
  if (bytes == 0) return;
  check(ncclSend(data, static_cast<std::size_t>(bytes), ncclUint8, peer, lane.comm,
                 lane.queue.stream()),
        "ncclSend");
}

void receive(const Lane& lane, int peer, void* data, index_t bytes) {
  if (bytes == 0) return;
  check(ncclRecv(data, static_cast<std::size_t>(bytes), ncclUint8, peer, lane.comm,
                 lane.queue.stream()),
        "ncclRecv");
}

index_t at(std::span<const index_t> counts, int rank) {
  return counts[static_cast<std::size_t>(rank)];
}

std::vector<index_t> offsets_of(std::span<const index_t> counts) {
  std::vector<index_t> offsets(counts.size() + 1, 0);
  std::partial_sum(counts.begin(), counts.end(), offsets.begin() + 1);
  return offsets;
}

bool all_equal(std::span<const index_t> counts) {
  return std::all_of(counts.begin(), counts.end(),
                     [&](index_t count) { return count == counts.front(); });
}

// Peers in the order of their distance: nobody is everybody's first.
template <class Fn>
void for_each_peer(const Lane& lane, Fn&& fn) {
  for (int distance = 1; distance < lane.size; ++distance)
    fn((lane.rank + distance) % lane.size, (lane.rank + lane.size - distance) % lane.size);
}

void gather_exactly(const Lane& lane, ConstTensorView part, TensorView whole,
                    std::span<const index_t> counts) {
  const std::vector<index_t> offsets = offsets_of(counts);
  const index_t size = size_of(whole.dtype);
  const auto place = [&](int rank) { return whole.flat().at(0, at(offsets, rank)); };
  copy(lane, place(lane.rank), part.data, part.bytes());
  CallGroup calls;
  for_each_peer(lane, [&](int to, int from) {
    send(lane, to, part.data, part.bytes());
    receive(lane, from, place(from), at(counts, from) * size);
  });
  calls.end();
}

Tensor gather_padded(const Lane& lane, ConstTensorView part, TensorView whole,
                     std::span<const index_t> counts, index_t largest) {
  const std::vector<index_t> offsets = offsets_of(counts);
  Tensor slots(lane.device, whole.dtype, lane.size, largest, MemoryKind::workspace);
  const TensorView view = slots;
  copy(lane, view.at(lane.rank, 0), part.data, part.bytes());
  check(ncclAllGather(view.at(lane.rank, 0), view.data,
                      static_cast<std::size_t>(largest * size_of(whole.dtype)), ncclUint8,
                      lane.comm, lane.queue.stream()),
        "ncclAllGather");
  for (int rank = 0; rank < lane.size; ++rank)
    copy(lane, whole.flat().at(0, at(offsets, rank)), view.at(rank, 0),
         at(counts, rank) * size_of(whole.dtype));
  return slots;
}

/// Sizes of an ordered reduction, in elements.
struct Rounds {
  index_t chunk;   // of every piece that travels in one round
  index_t stride;  // between what is received from one peer and from the next
  Rounds(const Lane& lane, DType type, index_t largest, index_t own) {
    const index_t size = size_of(type);
    const index_t unit = kSlotAlignment / size;
    const index_t fits = lane.options.scratch_bytes / (std::max(1, lane.size - 1) * size);
    chunk = std::min(largest, std::max<index_t>(unit, fits / unit * unit));
    stride = (std::min(chunk, own) + unit - 1) / unit * unit;
  }
};

// Every piece to its owner, a chunk of each per round, so that scratch memory stays bounded.
Tensor ordered_reduce_scatter(const Lane& lane, ReduceOp op, ConstTensorView whole, TensorView part,
                              std::span<const index_t> counts) {
  const DType type = whole.dtype;
  const index_t own = at(counts, lane.rank);
  const index_t largest = *std::max_element(counts.begin(), counts.end());
  const Rounds rounds(lane, type, largest, own);
  const std::vector<index_t> offsets = offsets_of(counts);
  Tensor slots(lane.device, type, lane.size - 1, rounds.stride, MemoryKind::workspace);
  const TensorView view = slots;
  for (index_t begin = 0; begin < largest; begin += rounds.chunk) {
    const auto length = [&](int owner) {
      return std::clamp<index_t>(at(counts, owner) - begin, 0, rounds.chunk);
    };
    const auto piece = [&](int owner) { return whole.flat().at(0, at(offsets, owner) + begin); };
    const index_t mine = length(lane.rank);
    CallGroup calls;
    for_each_peer(lane, [&](int to, int from) {
      if (length(to) > 0) send(lane, to, piece(to), length(to) * size_of(type));
      const int slot = from < lane.rank ? from : from - 1;
      receive(lane, from, view.at(slot, 0), mine * size_of(type));
    });
    calls.end();
    if (mine == 0) continue;
    const Pieces pieces{piece(lane.rank), view.data, rounds.stride, lane.rank, lane.size};
    ordered_reduce(lane.queue, op, type, pieces, part.dtype, part.flat().at(0, begin), mine);
  }
  return slots;
}

// Everything to everybody: one round of messages instead of two.
Tensor small_all_reduce(const Lane& lane, TensorView x, ReduceOp op) {
  const index_t unit = kSlotAlignment / size_of(x.dtype);
  const index_t stride = (x.count() + unit - 1) / unit * unit;
  Tensor slots(lane.device, x.dtype, lane.size - 1, stride, MemoryKind::workspace);
  const TensorView view = slots;
  CallGroup calls;
  for_each_peer(lane, [&](int to, int from) {
    send(lane, to, x.data, x.bytes());
    receive(lane, from, view.at(from < lane.rank ? from : from - 1, 0), x.bytes());
  });
  calls.end();
  ordered_reduce(lane.queue, op, x.dtype, {x.data, view.data, stride, lane.rank, lane.size},
                 x.dtype, x.data, x.count());
  return slots;
}

// Everybody's numbers to everybody by NCCL, summed here over the tree of communicator.hpp.
Tensor tree_all_reduce(const Lane& lane, TensorView x, ReduceOp op) {
  Tensor slots(lane.device, x.dtype, lane.size, x.count(), MemoryKind::workspace);
  const TensorView view = slots;
  check(ncclAllGather(x.data, view.data, static_cast<std::size_t>(x.bytes()), ncclUint8, lane.comm,
                      lane.queue.stream()),
        "ncclAllGather");
  tree_reduce(lane.queue, op, x.dtype, view, x);
  return slots;
}

bool ring(const Lane& lane, ReduceOp op) {
  return lane.options.reduction == "ring" && op == ReduceOp::sum;
}

}  // namespace

Tensor all_gather(const Lane& lane, ConstTensorView part, TensorView whole,
                  std::span<const index_t> counts) {
  if (lane.size == 1) {
    copy(lane, whole.data, part.data, part.bytes());
    return {};
  }
  const index_t largest = *std::max_element(counts.begin(), counts.end());
  if (largest == 0) return {};
  if (all_equal(counts)) {
    check(ncclAllGather(part.data, whole.data, static_cast<std::size_t>(part.bytes()), ncclUint8,
                        lane.comm, lane.queue.stream()),
          "ncclAllGather");
    return {};
  }
  if (static_cast<double>(largest * lane.size) <=
      kPaddedAtMost * static_cast<double>(whole.count()))
    return gather_padded(lane, part, whole, counts, largest);
  gather_exactly(lane, part, whole, counts);
  return {};
}

Tensor reduce_scatter(const Lane& lane, ReduceOp op, ConstTensorView whole, TensorView part,
                      std::span<const index_t> counts) {
  if (whole.count() == 0) return {};
  if (lane.size == 1) {
    if (part.dtype == whole.dtype)
      copy(lane, part.data, whole.data, whole.bytes());
    else
      ordered_reduce(lane.queue, op, whole.dtype, {whole.data, whole.data, 0, 0, 1}, part.dtype,
                     part.data, whole.count());
    return {};
  }
  if (ring(lane, op) && all_equal(counts) && part.dtype == whole.dtype) {
    check(ncclReduceScatter(whole.data, part.data, static_cast<std::size_t>(part.count()),
                            type_of(whole.dtype), ncclSum, lane.comm, lane.queue.stream()),
          "ncclReduceScatter");
    return {};
  }
  return ordered_reduce_scatter(lane, op, whole, part, counts);
}

std::vector<Tensor> all_reduce(const Lane& lane, TensorView x, ReduceOp op) {
  std::vector<Tensor> scratch;
  if (lane.size == 1 || x.count() == 0) return scratch;
  if (ring(lane, op)) {
    check(ncclAllReduce(x.data, x.data, static_cast<std::size_t>(x.count()), type_of(x.dtype),
                        ncclSum, lane.comm, lane.queue.stream()),
          "ncclAllReduce");
  } else if (x.count() <= kSmallAllReduce) {
    scratch.push_back(lane.size > kFlatRanks ? tree_all_reduce(lane, x, op)
                                             : small_all_reduce(lane, x, op));
  } else {
    const Partition cut = Partition::even("all_reduce", x.count(), lane.size);
    const std::vector<index_t> counts = cut.sizes();
    const TensorView part = x.flat().col_range(cut.begin(lane.rank), cut.size(lane.rank));
    scratch.push_back(reduce_scatter(lane, op, x, part, counts));
    scratch.push_back(all_gather(lane, part, x, counts));
  }
  return scratch;
}

void broadcast(const Lane& lane, TensorView x, int root) {
  if (lane.size == 1 || x.count() == 0) return;
  check(ncclBroadcast(x.data, x.data, static_cast<std::size_t>(x.bytes()), ncclUint8, root,
                      lane.comm, lane.queue.stream()),
        "ncclBroadcast");
}

void exchange(const Lane& lane, std::span<const Exchange> messages, std::span<const Exchange> own) {
  for (const Exchange& message : own)
    copy(lane, message.receive.data, message.send.data, message.send.bytes());
  if (lane.size == 1) return;
  CallGroup calls;
  for (const Exchange& message : messages) {
    if (message.peer == lane.rank) continue;
    send(lane, message.peer, message.send.data, message.send.bytes());
    receive(lane, message.peer, message.receive.data, message.receive.bytes());
  }
  calls.end();
}

}  // namespace t3d::nccl
