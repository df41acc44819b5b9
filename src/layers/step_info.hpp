// What a layer must know about the pass it is in.
#pragma once
#include "core/random.hpp"
#include "core/types.hpp"
#include "device/tensor_view.hpp"

namespace t3d {

class KvCache;

/// A pass that keeps keys and values and, with one row for each sequence, attends to kept ones.
struct KeptPass {
  KvCache& cache;
  /// [1, rows of the slab] int32, on the device: each row's place in the cache of this rank, -1 =
  /// it is not kept (padding), and its position in its sequence.
  ConstTensorView places, positions;
};

struct PassInfo {
  index_t length = 0;          // tokens per sequence
  index_t first_position = 0;  // sample-ledger position of the micro-batch's first sequence
  index_t step = 0;
  std::uint64_t seed = 0;
  bool training = true;
  const KeptPass* kept = nullptr;  // null: whole sequences, nothing is kept

  /// One row for each sequence goes on from kept ones, each computed alone.
  [[nodiscard]] bool continues() const { return kept != nullptr && length == 1; }

  /// Independent masks per step and place; rows are global tokens, so any mesh drops the same ones.
  [[nodiscard]] RandomKey dropout_key(std::uint64_t place) const {
    return {seed ^ (static_cast<std::uint64_t>(step) * 0x9E3779B97F4A7C15ULL),
            stream_of("dropout") + place};
  }
};

}  // namespace t3d
