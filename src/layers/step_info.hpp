// What a layer must know about the pass it is in.
#pragma once
#include "core/random.hpp"
#include "core/types.hpp"

namespace t3d {

struct PassInfo {
  index_t length = 0;          // tokens per sequence
  index_t first_position = 0;  // sample-ledger position of the micro-batch's first sequence
  index_t step = 0;
  std::uint64_t seed = 0;
  bool training = true;

  /// Independent masks per step and place; rows are global tokens, so any mesh drops the same ones.
  [[nodiscard]] RandomKey dropout_key(std::uint64_t place) const {
    return {seed ^ (static_cast<std::uint64_t>(step) * 0x9E3779B97F4A7C15ULL),
            stream_of("dropout") + place};
  }
};

}  // namespace t3d
