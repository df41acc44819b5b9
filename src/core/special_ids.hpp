// Token ids with a meaning of their own, as tokenizers have them and token files keep them.
#pragma once
#include <cstdint>

namespace t3d {

/// -1 = there is none.
struct SpecialIds {
  std::int32_t bos = -1, eos = -1, pad = -1, unknown = -1;
  friend bool operator==(const SpecialIds&, const SpecialIds&) = default;
};

}  // namespace t3d
