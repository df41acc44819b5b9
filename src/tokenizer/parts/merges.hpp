// The merges of byte-pair encoding: which two neighbours become one, and in which order.
#pragma once
#include <cstdint>
#include <vector>

namespace t3d::tok {

class Merges {
 public:
  /// `left` and `right` become `merged`; lower ranks first. A later entry of the same pair wins.
  void add(std::int32_t left, std::int32_t right, std::int32_t rank, std::int32_t merged);
  /// Merges the symbols of one word until nothing is left to do: always the pair of the lowest
  /// rank, the leftmost of equal ones.
  void apply(std::vector<std::int32_t>& symbols) const;

 private:
  struct Merge {
    std::int32_t rank, merged;
  };
  static constexpr std::int32_t kNone = INT32_MAX;
  [[nodiscard]] Merge find(std::int32_t left, std::int32_t right) const;
  [[nodiscard]] std::size_t slot_of(std::uint64_t key) const {
    return (key * 0x9E3779B97F4A7C15ULL >> 29U) & (slots_.size() - 1);
  }
  void apply_short(std::vector<std::int32_t>& symbols) const;
  void apply_long(std::vector<std::int32_t>& symbols) const;

  struct Slot {
    std::uint64_t key = UINT64_MAX;  // left and right
    Merge merge{kNone, -1};
  };
  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two, at most half full
  std::size_t used_ = 0;
};

}  // namespace t3d::tok
