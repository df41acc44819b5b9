#include "hetero/planner/rank_order.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace t3d {
namespace {

constexpr double kEqual = 0.01;

struct Entry {
  int rank = 0;
  double seconds = 0;
};

/// By seconds; then runs within kEqual of their first are put in the order of ranks.
void sort_entries(std::vector<Entry>& entries) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.seconds < b.seconds; });
  for (auto first = entries.begin(); first != entries.end();) {
    const double limit = first->seconds * (1 + kEqual);
    const auto last = std::find_if(first, entries.end(),
                                   [&](const Entry& entry) { return entry.seconds > limit; });
    std::sort(first, last, [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
    first = last;
  }
}

std::vector<Entry> sorted_entries(const Speeds& speeds, const StepWork& work) {
  std::vector<Entry> entries;
  for (std::size_t rank = 0; rank < speeds.ranks.size(); ++rank) {
    const double seconds = speeds.ranks[rank].seconds(work);
    if (std::isfinite(seconds)) entries.push_back({static_cast<int>(rank), seconds});
  }
  sort_entries(entries);
  return entries;
}

RankOrder order_of(const std::vector<Entry>& entries) {
  RankOrder order;
  for (const auto& [rank, seconds] : entries) {
    order.ranks.push_back(rank);
    order.seconds.push_back(seconds);
  }
  return order;
}

}  // namespace

std::string lacking_speed(const Speeds& speeds, const StepWork& work) {
  for (std::size_t rank = 0; rank < speeds.ranks.size(); ++rank) {
    if (std::isfinite(speeds.ranks[rank].seconds(work))) continue;
    std::vector<const char*> classes;
    for (std::size_t at = 0; at < kWorkClasses; ++at)
      if (const auto kind = static_cast<WorkClass>(at);
          work_of(work, kind) > 0 && speeds.ranks[rank].curve(kind).empty())
        classes.push_back(name_of(kind));
    return fmt::format("rank {} has none for {}", rank, fmt::join(classes, ", "));
  }
  return {};
}

RankOrder order_by_speed(const Speeds& speeds, const StepWork& work) {
  return order_of(sorted_entries(speeds, work));
}

RankOrder order_by_node(const Speeds& speeds, const StepWork& work) {
  const std::vector<Entry> entries = sorted_entries(speeds, work);
  std::map<std::string, std::vector<Entry>> nodes;
  for (const Entry& entry : entries)
    nodes[speeds.ranks[static_cast<std::size_t>(entry.rank)].node].push_back(entry);
  std::map<int, const std::vector<Entry>*> by_first;  // lowest rank of the node
  std::vector<Entry> slowest;
  for (const auto& [name, members] : nodes) {
    Entry of_node = members.front();
    for (const Entry& member : members) {
      of_node.rank = std::min(of_node.rank, member.rank);
      of_node.seconds = std::max(of_node.seconds, member.seconds);
    }
    by_first[of_node.rank] = &members;
    slowest.push_back(of_node);
  }
  std::sort(slowest.begin(), slowest.end(),
            [](const Entry& a, const Entry& b) { return a.rank < b.rank; });
  sort_entries(slowest);
  std::vector<Entry> all;
  for (const Entry& node : slowest)
    all.insert(all.end(), by_first[node.rank]->begin(), by_first[node.rank]->end());
  return order_of(all);
}

std::vector<int> mixed_place(const RankOrder& order, index_t replicas, index_t planes_each,
                             index_t size) {
  const auto count = static_cast<std::size_t>(replicas), ranks = static_cast<std::size_t>(size);
  std::vector<std::vector<int>> bins(count);
  std::vector<double> rates(count, 0.0);
  std::vector<std::size_t> by_rate(count);
  std::iota(by_rate.begin(), by_rate.end(), std::size_t{0});
  std::size_t at = 0;  // in the order
  for (index_t round = 0; round < planes_each; ++round) {
    std::stable_sort(by_rate.begin(), by_rate.end(),
                     [&](std::size_t a, std::size_t b) { return rates[a] < rates[b]; });
    for (const std::size_t bin : by_rate) {
      const auto begin = order.ranks.begin() + static_cast<std::ptrdiff_t>(at);
      bins[bin].insert(bins[bin].end(), begin, begin + static_cast<std::ptrdiff_t>(ranks));
      // A plane is as fast as its slowest rank.
      const auto seconds = order.seconds.begin() + static_cast<std::ptrdiff_t>(at);
      rates[bin] += 1 / *std::max_element(seconds, seconds + static_cast<std::ptrdiff_t>(ranks));
      at += ranks;
    }
  }
  std::vector<int> place;
  for (const std::vector<int>& bin : bins) place.insert(place.end(), bin.begin(), bin.end());
  return place;
}

}  // namespace t3d
