#include "core/levenshtein.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace t3d {

index_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the usual table: a swap of neighbours looks two rows back.
  std::vector<index_t> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<index_t>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::swap(before, above);
    std::swap(above, row);
    row[0] = static_cast<index_t>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const index_t change = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({change, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

std::optional<std::string> nearest_word(std::string_view word, std::span<const std::string> words) {
  std::optional<std::string> best;
  index_t best_distance = 0;
  for (const std::string& candidate : words) {
    const auto longer = static_cast<index_t>(std::max(word.size(), candidate.size()));
    const auto shorter = static_cast<index_t>(std::min(word.size(), candidate.size()));
    const index_t most = std::min(std::max<index_t>(1, longer / 3), longer - 1);
    if (longer - shorter > most) continue;  // each missing letter is a change
    const index_t distance = edit_distance(word, candidate);
    if (distance > most) continue;
    if (!best || distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace t3d
