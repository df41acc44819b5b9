// Partition: one dimension cut into parts on a unit lattice. Pure arithmetic; parts may be unequal
// or empty, only the last non-empty part may end off the lattice (at the dimension's length).
//
//   length 10, unit 4, weights {1, 1}  ->  offsets 0 8 10   (units 4+4 | 2)
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "core/types.hpp"

namespace t3d {

class Partition {
 public:
  Partition() = default;

  /// As equal as the lattice allows; earlier parts get the extra units.
  static Partition even(std::string name, index_t length, index_t parts, index_t unit = 1);

  /// Proportional to `weights` by largest remainder over the units (ties to the lower index), so
  /// the same on every rank. Zero weight gives an empty part. Throws a config Error if a weight is
  /// negative or not finite, or all are zero while length > 0.
  static Partition weighted(std::string name, index_t length, std::span<const double> weights,
                            index_t unit = 1);

  /// Explicit offsets 0 = o[0] <= ... <= o[n] = length.
  static Partition from_offsets(std::string name, std::vector<index_t> offsets, index_t unit = 1);

  /// Parts of these sizes.
  static Partition from_sizes(std::string name, std::span<const index_t> sizes, index_t unit = 1);

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] index_t length() const { return offsets_.back(); }
  [[nodiscard]] index_t unit() const { return unit_; }
  [[nodiscard]] index_t parts() const { return static_cast<index_t>(offsets_.size()) - 1; }
  [[nodiscard]] index_t begin(index_t part) const {
    return offsets_[static_cast<std::size_t>(part)];
  }
  [[nodiscard]] index_t end(index_t part) const { return begin(part + 1); }
  [[nodiscard]] index_t size(index_t part) const { return end(part) - begin(part); }
  [[nodiscard]] index_t largest() const;
  [[nodiscard]] std::vector<index_t> sizes() const;
  [[nodiscard]] std::span<const index_t> offsets() const { return offsets_; }

  /// The part that holds element `index` (0 <= index < length).
  [[nodiscard]] index_t part_of(index_t index) const;

  /// The same cut of a dimension `factor` times as long (heads -> columns, sequences -> tokens).
  [[nodiscard]] Partition scaled(index_t factor, std::string name) const;

  /// "hidden 768 = 256+512"
  [[nodiscard]] std::string describe() const;

  friend bool operator==(const Partition& a, const Partition& b) {
    return a.unit_ == b.unit_ && a.offsets_ == b.offsets_ && a.name_ == b.name_;
  }

 private:
  std::string name_;
  index_t unit_ = 1;
  std::vector<index_t> offsets_{0};
};

/// Partition::even(length, parts, unit).begin(part), without making it; part == parts: the end.
[[nodiscard]] constexpr index_t even_begin(index_t length, index_t parts, index_t part,
                                           index_t unit = 1) {
  const index_t units = (length + unit - 1) / unit;
  return std::min((part * (units / parts) + std::min(part, units % parts)) * unit, length);
}
[[nodiscard]] constexpr index_t even_size(index_t length, index_t parts, index_t part,
                                          index_t unit = 1) {
  return even_begin(length, parts, part + 1, unit) - even_begin(length, parts, part, unit);
}

}  // namespace t3d
