// Token ids with a meaning of their own, as tokenizers have them and token files keep them.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace t3d {

/// -1 = there is none.
struct SpecialIds {
  std::int32_t bos = -1, eos = -1, pad = -1, unknown = -1;
  /// All ids that end a text that a model writes, where these are not eos alone. eos is the one
  /// behind documents.
  std::vector<std::int32_t> ends = {};
  /// bos stands before every text; not said = as the tokenizer does it.
  std::optional<bool> adds_bos = {};
  /// Which of them the model's files alone say: its tokenizer knows no such token.
  struct Unnamed {
    bool bos = false, eos = false, pad = false;
    friend bool operator==(const Unnamed&, const Unnamed&) = default;
  } unnamed = {};
  friend bool operator==(const SpecialIds&, const SpecialIds&) = default;

  [[nodiscard]] std::vector<std::int32_t> all_ends() const {
    if (!ends.empty() || eos < 0) return ends;
    return {eos};
  }
  [[nodiscard]] std::int32_t highest() const {
    std::int32_t id = std::max({bos, eos, pad, unknown});
    for (const std::int32_t end : ends) id = std::max(id, end);
    return id;
  }
};

/// Each id with its name in files. `Ids`: const or not.
template <class Ids>
[[nodiscard]] auto named_ids(Ids& ids) {
  return std::array{std::pair{"bos", &ids.bos}, std::pair{"eos", &ids.eos},
                    std::pair{"pad", &ids.pad}, std::pair{"unknown", &ids.unknown}};
}

template <class Unnamed>
[[nodiscard]] auto named_flags(Unnamed& unnamed) {
  return std::array{std::pair{"bos", &unnamed.bos}, std::pair{"eos", &unnamed.eos},
                    std::pair{"pad", &unnamed.pad}};
}

}  // namespace t3d
