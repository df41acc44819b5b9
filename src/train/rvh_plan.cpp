#include "train/rvh_plan.hpp"

#include <algorithm>

namespace t3d {
namespace {

Range intersection(const Range& a, const Range& b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.begin < both.end ? both : Range{};
}

/// The merge of `half`-sized runs that `replica` takes part in.
RvhMerge merge_of(index_t replicas, index_t replica, index_t half) {
  RvhMerge merge;
  const index_t first = replica / (2 * half) * (2 * half), middle = first + half;
  if (middle >= replicas) return merge;
  merge.first = first;
  merge.middle = middle;
  merge.last = std::min(first + 2 * half, replicas);
  merge.lower = replica < middle;
  return merge;
}

/// Ranges of all replicas after the merge of [first, last); `own` learns its messages.
void take_part(std::vector<Range>& ranges, const RvhMerge& merge, index_t replica, RvhMerge& own) {
  const auto at = [&](index_t r) -> Range& { return ranges[static_cast<std::size_t>(r)]; };
  const auto transfer = [&](index_t from, index_t to, const Range& range) {
    if (range.size() == 0) return;
    if (replica == from) own.sends.push_back({static_cast<int>(to), range});
    if (replica == to) own.receives.push_back({static_cast<int>(from), range});
  };
  const index_t half = merge.middle - merge.first;
  if (merge.last - merge.middle == half) {
    for (index_t left = merge.first; left < merge.middle; ++left) {
      const index_t right = left + half;
      const Range whole = at(left);
      const index_t cut = whole.begin + (whole.size() + 1) / 2;
      transfer(right, left, {whole.begin, cut});
      transfer(left, right, {cut, whole.end});
      at(left) = {whole.begin, cut};
      at(right) = {cut, whole.end};
    }
  } else {
    for (index_t left = merge.first; left < merge.middle; ++left)
      for (index_t right = merge.middle; right < merge.last; ++right)
        transfer(right, left, intersection(at(left), at(right)));
    for (index_t right = merge.middle; right < merge.last; ++right) at(right) = {};
  }
}

}  // namespace

std::vector<RvhMerge> rvh_plan(index_t replicas, index_t replica, index_t count) {
  std::vector<Range> ranges(static_cast<std::size_t>(replicas), Range{0, count});
  std::vector<RvhMerge> plan;
  for (index_t half = 1; half < replicas; half *= 2) {
    RvhMerge own = merge_of(replicas, replica, half);
    for (index_t first = 0; first + half < replicas; first += 2 * half)
      take_part(ranges, merge_of(replicas, first, half), replica, own);
    own.kept = ranges[static_cast<std::size_t>(replica)];
    plan.push_back(std::move(own));
  }
  return plan;
}

}  // namespace t3d
