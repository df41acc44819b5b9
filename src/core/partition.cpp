#include "core/partition.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"

namespace t3d {
namespace {

std::vector<index_t> offsets_from_units(const std::vector<index_t>& units, index_t length,
                                        index_t unit) {
  std::vector<index_t> offsets(units.size() + 1, 0);
  index_t sum = 0;
  for (std::size_t part = 0; part < units.size(); ++part) {
    sum += units[part];
    offsets[part + 1] = std::min(sum * unit, length);
  }
  return offsets;
}

}  // namespace

Partition Partition::even(std::string name, index_t length, index_t parts, index_t unit) {
  T3D_CHECK(length >= 0 && parts >= 1 && unit >= 1, "partition {} of {} in {} parts, unit {}", name,
            length, parts, unit);
  const index_t units = (length + unit - 1) / unit;
  std::vector<index_t> share(static_cast<std::size_t>(parts), units / parts);
  for (index_t part = 0; part < units % parts; ++part) ++share[static_cast<std::size_t>(part)];
  return from_offsets(std::move(name), offsets_from_units(share, length, unit), unit);
}

Partition Partition::weighted(std::string name, index_t length, std::span<const double> weights,
                              index_t unit) {
  T3D_CHECK(length >= 0 && !weights.empty() && unit >= 1, "partition {} of {}", name, length);
  for (const double weight : weights)
    if (!(weight >= 0) || !std::isfinite(weight))
      throw_error(ExitCode::config, "widths of {}: {} is not a weight (finite and >= 0)", name,
                  weight);
  // Below 1 by a power of two, which rounds nothing, so that no sum or product overflows.
  int exponent = 0;
  (void)std::frexp(*std::max_element(weights.begin(), weights.end()), &exponent);
  std::vector<double> scaled;
  for (const double weight : weights) scaled.push_back(std::ldexp(weight, -exponent));
  const double total = std::accumulate(scaled.begin(), scaled.end(), 0.0);
  if (total <= 0 && length > 0)
    throw_error(ExitCode::config, "widths of {}: all weights are zero", name);

  const index_t units = (length + unit - 1) / unit;
  std::vector<index_t> share(weights.size(), 0);
  std::vector<std::pair<double, std::size_t>> remainders;
  index_t given = 0;
  for (std::size_t part = 0; part < weights.size() && total > 0; ++part) {
    const double exact = static_cast<double>(units) * scaled[part] / total;
    // 1e-9: weights such as 3:1 must not lose a unit to the rounding of the division.
    share[part] = static_cast<index_t>(std::floor(exact + 1e-9));
    given += share[part];
    if (weights[part] > 0) remainders.emplace_back(static_cast<double>(share[part]) - exact, part);
  }
  std::stable_sort(remainders.begin(), remainders.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first - 1e-12; });
  for (std::size_t at = 0; given < units; ++at, ++given) ++share[remainders[at].second];
  return from_offsets(std::move(name), offsets_from_units(share, length, unit), unit);
}

Partition Partition::from_offsets(std::string name, std::vector<index_t> offsets, index_t unit) {
  T3D_CHECK(offsets.size() >= 2 && offsets.front() == 0, "partition {}: bad offsets", name);
  T3D_CHECK(std::is_sorted(offsets.begin(), offsets.end()), "partition {}: offsets fall", name);
  Partition result;
  result.name_ = std::move(name);
  result.unit_ = unit;
  result.offsets_ = std::move(offsets);
  return result;
}

Partition Partition::from_sizes(std::string name, std::span<const index_t> sizes, index_t unit) {
  std::vector<index_t> offsets{0};
  for (const index_t size : sizes) offsets.push_back(offsets.back() + size);
  return from_offsets(std::move(name), std::move(offsets), unit);
}

index_t Partition::largest() const {
  index_t most = 0;
  for (index_t part = 0; part < parts(); ++part) most = std::max(most, size(part));
  return most;
}

std::vector<index_t> Partition::sizes() const {
  std::vector<index_t> result;
  for (index_t part = 0; part < parts(); ++part) result.push_back(size(part));
  return result;
}

index_t Partition::part_of(index_t index) const {
  T3D_CHECK(index >= 0 && index < length(), "element {} of {}", index, describe());
  const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), index);
  return static_cast<index_t>(after - offsets_.begin()) - 1;
}

Partition Partition::scaled(index_t factor, std::string name) const {
  std::vector<index_t> offsets(offsets_);
  for (index_t& offset : offsets) offset *= factor;
  return from_offsets(std::move(name), std::move(offsets), unit_ * factor);
}

std::string Partition::describe() const {
  std::string text = fmt::format("{} {} =", name_, length());
  for (index_t part = 0; part < parts(); ++part)
    text += fmt::format("{}{}", part == 0 ? " " : "+", size(part));
  return text;
}

}  // namespace t3d
