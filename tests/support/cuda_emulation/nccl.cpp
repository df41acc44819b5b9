// NCCL among threads. Every operation is messages between pairs of ranks, submitted to the stream
// as one operation that is polled: it puts what it sends where its peers look, waits for what it
// receives and for its own messages to be taken (so that calls that need a group hang without one),
// and computes. Reductions add in the order of a ring and round at every hop, as NCCL does and the
// program's definition does not. T3D_EMULATED_NCCL_LOST=1: all communicators report a lost peer.
#include "nccl.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/dtype.hpp"

namespace {

using Bytes = std::vector<std::byte>;

struct Message {
  Bytes data;
  std::shared_ptr<bool> taken = std::make_shared<bool>(false);
};

/// What the ranks of one communicator share; everything under the mutex.
struct Clique {
  explicit Clique(int ranks_) : ranks(ranks_) {}
  const int ranks;
  std::mutex mutex;
  std::map<std::pair<int, int>, std::deque<Message>> channels;  // from, to

  struct Split {
    std::map<int, std::pair<int, int>> wishes;                       // rank -> colour, key
    std::map<int, std::pair<std::shared_ptr<Clique>, int>> results;  // rank -> group, rank there
  };
  std::map<int, Split> splits;  // by number
};

/// One rank's side; outlives the handle while operations are in flight.
struct Side {
  std::shared_ptr<Clique> clique;
  int rank = 0;
  int splits = 0;
  bool aborted = false;  // under the clique's mutex, like the two below
  int in_flight = 0;
  ncclResult_t error = ncclSuccess;
};
using SidePtr = std::shared_ptr<Side>;

}  // namespace

struct ncclComm {
  SidePtr side;
};

namespace {

/// One operation of one rank.
struct Launch {
  Launch(ncclComm_t comm, cudaStream_t on) : side(comm->side), stream(on) {}
  SidePtr side;
  cudaStream_t stream;
  struct Send {
    int peer;
    const void* data;
    std::size_t bytes;
  };
  struct Receive {
    int peer;
    std::function<void*()> place;  // asked when the message is there
    std::size_t bytes;
  };
  std::vector<Send> sends;
  std::vector<Receive> receives;
  std::vector<std::function<void()>> local;  // after the messages

  /// Goes as far as it can; true when finished, and then ready for another time (in a graph).
  bool advance();
  bool counted = false;  // among those in flight

 private:
  [[nodiscard]] bool over() const { return side->aborted || side->error != ncclSuccess; }
  void post();
  bool receive();

  bool posted_ = false;
  std::size_t received_ = 0;
  std::vector<std::shared_ptr<bool>> out_;  // whether the messages were taken
};

bool Launch::advance() {
  const std::lock_guard lock(side->clique->mutex);
  if (!over()) {
    if (!posted_) post();
    if (!receive() && !over()) return false;
  }
  if (!over())
    for (const auto& compute : local) compute();
  if (std::exchange(counted, false)) --side->in_flight;
  posted_ = false;
  received_ = 0;
  out_.clear();
  return true;
}

void Launch::post() {
  posted_ = true;
  for (const Send& send : sends) {
    Message message;
    const auto* data = static_cast<const std::byte*>(send.data);
    message.data.assign(data, data + send.bytes);
    out_.push_back(message.taken);
    side->clique->channels[{side->rank, send.peer}].push_back(std::move(message));
  }
}

// True when all is here and all that was sent has been taken.
bool Launch::receive() {
  for (; received_ < receives.size(); ++received_) {
    const Receive& wanted = receives[received_];
    auto& channel = side->clique->channels[{wanted.peer, side->rank}];
    if (channel.empty()) return false;
    const Message message = std::move(channel.front());
    channel.pop_front();
    *message.taken = true;
    if (message.data.size() != wanted.bytes) {
      side->error = ncclInvalidUsage;  // the ranks' calls differ
      return false;
    }
    if (wanted.bytes > 0) std::memcpy(wanted.place(), message.data.data(), wanted.bytes);
  }
  return std::all_of(out_.begin(), out_.end(), [](const auto& taken) { return *taken; });
}

struct OpenGroup {
  int depth = 0;
  std::vector<Launch> launches;
};
OpenGroup& open_group() {
  static thread_local OpenGroup group;
  return group;
}

std::mutex counts_mutex;
std::map<int, int> operations_of_size;

ncclResult_t submit(Launch launch) {
  {
    const std::lock_guard lock(counts_mutex);
    ++operations_of_size[launch.side->clique->ranks];
  }
  const cudaStream_t stream = launch.stream;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) return ncclUnhandledCudaError;
  if (status == cudaStreamCaptureStatusNone) {
    const std::lock_guard lock(launch.side->clique->mutex);
    ++launch.side->in_flight;
    launch.counted = true;
  }
  const auto held = std::make_shared<Launch>(std::move(launch));
  const cudaError_t queued = t3d::emulation::enqueue_polled(stream, "an NCCL operation",
                                                            [held] { return held->advance(); });
  return queued == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

// Calls of one group on one communicator are one operation.
ncclResult_t add(Launch launch) {
  OpenGroup& group = open_group();
  if (group.depth == 0) return submit(std::move(launch));
  for (Launch& open : group.launches) {
    if (open.side != launch.side) continue;
    if (open.stream != launch.stream) return ncclInvalidUsage;
    const auto append = [](auto& to, auto& from) {
      to.insert(to.end(), std::make_move_iterator(from.begin()),
                std::make_move_iterator(from.end()));
    };
    append(open.sends, launch.sends);
    append(open.receives, launch.receives);
    append(open.local, launch.local);
    return ncclSuccess;
  }
  group.launches.push_back(std::move(launch));
  return ncclSuccess;
}

std::size_t size_of(ncclDataType_t type) {
  switch (type) {
    case ncclUint8: return 1;
    case ncclFloat16:
    case ncclBfloat16: return 2;
    case ncclInt32:
    case ncclFloat32: return 4;
    case ncclFloat64: return 8;
  }
  return 0;
}

template <class T>
T sum(T a, T b) {
  return static_cast<T>(a + b);
}
t3d::bf16 sum(t3d::bf16 a, t3d::bf16 b) {
  return t3d::bf16(static_cast<float>(a) + static_cast<float>(b));
}
t3d::f16 sum(t3d::f16 a, t3d::f16 b) {
  return t3d::f16(static_cast<float>(a) + static_cast<float>(b));
}

// The pieces in the order of a ring that ends at `owner`, rounded at every hop.
template <class T>
void add_in_ring(const std::vector<Bytes>& pieces, int owner, void* to) {
  const auto ranks = static_cast<int>(pieces.size());
  Bytes result = pieces[static_cast<std::size_t>((owner + 1) % ranks)];
  for (int hop = 2; hop <= ranks; ++hop) {
    const Bytes& piece = pieces[static_cast<std::size_t>((owner + hop) % ranks)];
    for (std::size_t at = 0; at < result.size(); at += sizeof(T)) {
      T a, b;
      std::memcpy(&a, result.data() + at, sizeof(T));
      std::memcpy(&b, piece.data() + at, sizeof(T));
      a = sum(a, b);
      std::memcpy(result.data() + at, &a, sizeof(T));
    }
  }
  if (!result.empty()) std::memcpy(to, result.data(), result.size());
}

void add_in_ring(ncclDataType_t type, const std::vector<Bytes>& pieces, int owner, void* to) {
  switch (type) {
    case ncclFloat64: return add_in_ring<double>(pieces, owner, to);
    case ncclFloat32: return add_in_ring<float>(pieces, owner, to);
    case ncclBfloat16: return add_in_ring<t3d::bf16>(pieces, owner, to);
    case ncclFloat16: return add_in_ring<t3d::f16>(pieces, owner, to);
    case ncclInt32: return add_in_ring<std::uint32_t>(pieces, owner, to);
    case ncclUint8: return;
  }
}

const std::byte* offset(const void* data, std::size_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}

/// A reduction of `bytes` per rank: piece r of `from` goes to rank r, the sum of the own ones to
/// `to`. In an all-reduce every "piece" is the whole and all add in the order of rank 0's ring.
Launch reduction(ncclComm_t comm, cudaStream_t stream, ncclDataType_t type, const void* from,
                 std::size_t stride, std::size_t bytes, int ring_end, void* to) {
  Launch launch(comm, stream);
  const int ranks = comm->side->clique->ranks;
  const int rank = comm->side->rank;
  auto pieces = std::make_shared<std::vector<Bytes>>(static_cast<std::size_t>(ranks), Bytes(bytes));
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    launch.sends.push_back({peer, offset(from, static_cast<std::size_t>(peer) * stride), bytes});
    launch.receives.push_back(
        {peer, [pieces, peer] { return (*pieces)[static_cast<std::size_t>(peer)].data(); }, bytes});
  }
  launch.local.push_back([=] {
    const std::byte* own = offset(from, static_cast<std::size_t>(rank) * stride);
    (*pieces)[static_cast<std::size_t>(rank)].assign(own, own + bytes);
    add_in_ring(type, *pieces, ring_end, to);
  });
  return launch;
}

ncclResult_t check_peer(ncclComm_t comm, int peer) {
  return comm != nullptr && peer >= 0 && peer < comm->side->clique->ranks ? ncclSuccess
                                                                          : ncclInvalidArgument;
}

}  // namespace

namespace t3d::emulation {

std::map<int, int> nccl_operations() {
  const std::lock_guard lock(counts_mutex);
  return operations_of_size;
}

}  // namespace t3d::emulation

extern "C" {

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclSuccess       ? "no error"
         : result == ncclRemoteError ? "remote process exited or there was a network error"
                                     : "an emulated error";
}
const char* ncclGetLastError(ncclComm_t) { return ""; }

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  static std::atomic<int> number{0};
  *id = {};
  const int own = ++number;
  std::memcpy(id->internal, &own, sizeof own);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank,
                                    ncclConfig_t*) {
  if (rank < 0 || rank >= ranks) return ncclInvalidArgument;
  struct Room {
    std::shared_ptr<Clique> clique;
    int present = 0;
  };
  static std::mutex mutex;
  static std::condition_variable full;
  static std::map<std::string, Room> rooms;
  std::unique_lock lock(mutex);
  Room& room = rooms[std::string(id.internal, sizeof id.internal)];
  if (room.clique == nullptr) room.clique = std::make_shared<Clique>(ranks);
  ++room.present;
  full.notify_all();
  // Processes cannot meet here: better an error than a hang.
  if (!full.wait_for(lock, std::chrono::seconds(20), [&] { return room.present == ranks; }))
    return ncclSystemError;
  *comm = new ncclComm{std::make_shared<Side>(Side{room.clique, rank})};
  return ncclSuccess;
}

ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t* result, ncclConfig_t*) {
  Side& side = *comm->side;
  Clique& clique = *side.clique;
  std::unique_lock lock(clique.mutex);
  if (side.in_flight > 0) return ncclInvalidUsage;
  Clique::Split& split = clique.splits[side.splits++];
  split.wishes[side.rank] = {color, key};
  if (static_cast<int>(split.wishes.size()) == clique.ranks) {
    std::map<int, std::map<std::pair<int, int>, int>> groups;  // colour -> (key, rank) -> rank
    for (const auto& [rank, wish] : split.wishes)
      if (wish.first >= 0) groups[wish.first][{wish.second, rank}] = rank;
    for (const auto& [group_color, members] : groups) {
      const auto group = std::make_shared<Clique>(static_cast<int>(members.size()));
      int place = 0;
      for (const auto& [order, rank] : members) split.results[rank] = {group, place++};
    }
  }
  while (!side.aborted && static_cast<int>(split.wishes.size()) < clique.ranks) {
    lock.unlock();
    t3d::emulation::advance_streams();  // a peer may wait for what they hold before it comes here
    std::this_thread::yield();
    lock.lock();
  }
  *result = nullptr;
  const auto found = split.results.find(side.rank);
  if (found == split.results.end()) return ncclSuccess;
  *result = new ncclComm{std::make_shared<Side>(Side{found->second.first, found->second.second})};
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  {
    const std::lock_guard lock(comm->side->clique->mutex);
    comm->side->aborted = true;
  }
  delete comm;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* state) {
  const std::lock_guard lock(comm->side->clique->mutex);
  *state = comm->side->error;
  if (std::getenv("T3D_EMULATED_NCCL_LOST") != nullptr) *state = ncclRemoteError;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++open_group().depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  OpenGroup& group = open_group();
  if (group.depth == 0) return ncclInvalidUsage;
  if (--group.depth > 0) return ncclSuccess;
  ncclResult_t result = ncclSuccess;
  for (Launch& launch : std::exchange(group.launches, {}))
    if (const ncclResult_t one = submit(std::move(launch)); one != ncclSuccess) result = one;
  return result;
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  if (check_peer(comm, peer) != ncclSuccess) return ncclInvalidArgument;
  Launch launch(comm, stream);
  launch.sends.push_back({peer, data, count * size_of(type)});
  return add(std::move(launch));
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  if (check_peer(comm, peer) != ncclSuccess) return ncclInvalidArgument;
  Launch launch(comm, stream);
  launch.receives.push_back({peer, [data] { return data; }, count * size_of(type)});
  return add(std::move(launch));
}

ncclResult_t ncclBroadcast(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           int root, ncclComm_t comm, cudaStream_t stream) {
  if (check_peer(comm, root) != ncclSuccess) return ncclInvalidArgument;
  Launch launch(comm, stream);
  const std::size_t bytes = count * size_of(type);
  if (comm->side->rank != root) {
    launch.receives.push_back({root, [to] { return to; }, bytes});
  } else {
    for (int peer = 0; peer < comm->side->clique->ranks; ++peer)
      if (peer != root) launch.sends.push_back({peer, from, bytes});
    launch.local.push_back([=] {
      if (bytes > 0) std::memmove(to, from, bytes);
    });
  }
  return add(std::move(launch));
}

ncclResult_t ncclAllGather(const void* part, void* whole, std::size_t part_count,
                           ncclDataType_t type, ncclComm_t comm, cudaStream_t stream) {
  Launch launch(comm, stream);
  const std::size_t bytes = part_count * size_of(type);
  const auto place = [=](int rank) {
    return static_cast<std::byte*>(whole) + static_cast<std::size_t>(rank) * bytes;
  };
  const int own = comm->side->rank;
  for (int peer = 0; peer < comm->side->clique->ranks; ++peer) {
    if (peer == own) continue;
    launch.sends.push_back({peer, part, bytes});
    launch.receives.push_back({peer, [=] { return place(peer); }, bytes});
  }
  launch.local.push_back([=] {
    if (bytes > 0) std::memmove(place(own), part, bytes);
  });
  return add(std::move(launch));
}

ncclResult_t ncclReduceScatter(const void* whole, void* part, std::size_t part_count,
                               ncclDataType_t type, ncclRedOp_t, ncclComm_t comm,
                               cudaStream_t stream) {
  const std::size_t bytes = part_count * size_of(type);
  return add(reduction(comm, stream, type, whole, bytes, bytes, comm->side->rank, part));
}

ncclResult_t ncclAllReduce(const void* from, void* to, std::size_t count, ncclDataType_t type,
                           ncclRedOp_t, ncclComm_t comm, cudaStream_t stream) {
  return add(reduction(comm, stream, type, from, 0, count * size_of(type), 0, to));
}

}  // extern "C"
