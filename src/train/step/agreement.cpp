#include "train/step/agreement.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "core/random.hpp"

namespace t3d {
namespace {

constexpr std::uint64_t kMarks = 1U << 18, kDigests = std::uint64_t{1} << 32;

/// Odd: a difference of digests stays one when it is multiplied.
std::uint32_t factor_of(index_t d, index_t step) {
  return random_bits({static_cast<std::uint64_t>(step), 0}, d) | 1U;
}

}  // namespace

double mark_of(const std::string& plan_hash, std::uint64_t decision, index_t step) {
  const std::uint64_t all = stream_of(fmt::format("{} {} {}", plan_hash, decision, step));
  return static_cast<double>((all ^ all >> 32) % kMarks);
}

bool marks_agree(double sum, double squares, index_t ranks) {
  const double mean = sum / static_cast<double>(ranks);
  return squares == mean * sum;
}

std::string minority_text(const std::vector<double>& marks) {
  std::map<double, index_t> counts;
  for (const double mark : marks) ++counts[mark];
  const auto most =
      std::max_element(counts.begin(), counts.end(),
                       [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<std::size_t> others;
  for (std::size_t rank = 0; rank < marks.size(); ++rank)
    if (marks[rank] != most->first) others.push_back(rank);
  return fmt::format("rank{} {}", others.size() == 1 ? "" : "s", fmt::join(others, ", "));
}

double replica_part(std::uint64_t digest, index_t d, index_t replicas, index_t step) {
  std::uint32_t factor = factor_of(d, step);
  if (d == 0) {
    factor = 0;
    for (index_t other = 1; other < replicas; ++other) factor -= factor_of(other, step);
  }
  return static_cast<double>(factor * static_cast<std::uint32_t>(digest));
}

bool replicas_agree(double sum) { return static_cast<std::uint64_t>(sum) % kDigests == 0; }

std::optional<index_t> ReplicaDigests::sound() const {
  for (index_t d = 0; d < std::ssize(of); ++d)
    if (2 * std::ssize(unlike(d)) < std::ssize(of)) return d;
  return std::nullopt;
}

std::vector<index_t> ReplicaDigests::unlike(index_t d) const {
  std::vector<index_t> others;
  for (index_t other = 0; other < std::ssize(of); ++other)
    if (of[static_cast<std::size_t>(other)] != of[static_cast<std::size_t>(d)])
      others.push_back(other);
  return others;
}

}  // namespace t3d
