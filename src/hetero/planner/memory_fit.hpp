// Whether a plan fits into the ranks' memory, and what else would: shards at rest can lie where
// memory is free, apart from who computes; what then is still too much are sequences.
#pragma once
#include <string>
#include <vector>

#include "hetero/cost/memory.hpp"
#include "hetero/planner/slab_memory.hpp"
#include "hetero/speed/speeds.hpp"

namespace t3d {

/// Of a slab, the rank that lacks most.
struct MemoryShortage {
  std::size_t slab = 0;  // replica after replica
  Coord coord;
  int rank = 0;  // of the world
  MemoryCost cost;
  index_t needed = 0, room = 0;  // bytes
  /// "rank 3 at d=0 i=1 j=0 k=0 needs 95 MiB (weights 12 MiB + ...) and has 64 MiB"
  [[nodiscard]] std::string text() const;
};
/// In the order of slabs; none where everything fits. A rank with free_bytes = 0 has enough.
[[nodiscard]] std::vector<MemoryShortage> memory_shortages(const Plan& plan, const Speeds& speeds);

/// What memory allows the slabs of a plan to hold. Numbers of SlabMemory: near the exact ones.
class SlabRooms {
 public:
  /// `reserved`: bytes of every rank, by slab, that are not to be used.
  SlabRooms(const Plan& plan, const Speeds& speeds, const std::vector<index_t>& reserved);

  /// Part of a fibre's shards at rest for which the slab has room beside that many sequences of a
  /// step; at most 1, negative where even the sequences are too many.
  [[nodiscard]] double left(std::size_t slab, index_t sequences);
  /// Most sequences of a step, up to `limit`, beside that part of the shards; -1: none fits.
  [[nodiscard]] index_t most(std::size_t slab, double part, index_t limit);

 private:
  struct Room {
    index_t place = 0;  // j r + k
    index_t bytes = 0;
    bool on_gpu = false;
  };
  struct Slab {
    Coord at;
    std::size_t kind = 0;
    std::vector<Room> rooms;  // of the ranks whose memory is known
  };
  /// Slabs that need the same for the same number of sequences.
  struct Kind {
    Coord at;                                                         // one of them
    std::map<bool, StorageCurve> storage;                             // by on_gpu
    std::map<std::pair<index_t, bool>, std::vector<index_t>> needed;  // by (j, k)
  };
  [[nodiscard]] const std::vector<index_t>& needed(Kind& kind, index_t micro, bool on_gpu);
  [[nodiscard]] const StorageCurve& storage(Kind& kind, bool on_gpu);

  const Plan& plan_;
  SlabMemory memory_;
  std::vector<Slab> slabs_;
  std::vector<Kind> kinds_;
};

}  // namespace t3d
