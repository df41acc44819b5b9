#include "train/optimizer/param_groups.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace t3d {
namespace {

std::string_view group_name(std::string_view parameter, GroupBy by) {
  if (by == GroupBy::tensor) return parameter;
  if (by == GroupBy::model) return "model";
  constexpr std::string_view kBlocks = "blocks.";
  if (!parameter.starts_with(kBlocks)) return parameter;
  return parameter.substr(0, parameter.find('.', kBlocks.size()));
}

}  // namespace

ParamGroups::ParamGroups(const std::vector<ParamBucket*>& buckets, GroupBy by) {
  for (const ParamBucket* bucket : buckets) {
    std::vector<index_t>& groups = groups_.emplace_back();
    std::vector<Segment>& segments = segments_.emplace_back();
    if (!bucket->frozen()) trained_.push_back(groups_.size() - 1);
    for (const ParamEntry& entry : bucket->entries()) {
      groups.push_back(number_of(group_name(entry.name, by)));
      const auto [first, last] = bucket->shard_range(entry);
      if (first < last && !bucket->frozen()) segments.push_back({first, last, groups.back()});
    }
  }
}

index_t ParamGroups::number_of(std::string_view name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) return found - names_.begin();
  names_.emplace_back(name);
  return count() - 1;
}

std::vector<Segment> clip(const std::vector<Segment>& segments, index_t begin, index_t end) {
  std::vector<Segment> result;
  for (const Segment& segment : segments) {
    const index_t first = std::max(segment.begin, begin), last = std::min(segment.end, end);
    if (first < last) result.push_back({first - begin, last - begin, segment.group});
  }
  return result;
}

}  // namespace t3d
