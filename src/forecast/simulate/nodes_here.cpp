#include "forecast/simulate/nodes_here.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace t3d {
namespace {

constexpr double kAlike = 0.05;      // of the age
constexpr double kSameSeconds = 30;  // for which a rate stays
constexpr index_t kFewChanges = 50;  // of so many nodes one

}  // namespace

NodesHere::NodesHere(const std::vector<SimulatedClass>& classes)
    : classes_(classes), groups_(classes.size()), counts_(classes.size()), rates_(classes.size()) {}

void NodesHere::clear() {
  for (std::vector<Group>& groups : groups_) groups.clear();
  std::fill(counts_.begin(), counts_.end(), 0);
  std::fill(rates_.begin(), rates_.end(), Rate());
  count_ = 0;
  price_ = 0;
}

void NodesHere::come(std::size_t kind, index_t nodes, double born_seconds) {
  std::vector<Group>& groups = groups_[kind];
  const auto place =
      std::lower_bound(groups.begin(), groups.end(), born_seconds,
                       [](const Group& group, double born) { return group.born_seconds < born; });
  if (place != groups.end() && place->born_seconds == born_seconds)
    place->nodes += nodes;
  else
    groups.insert(place, {born_seconds, nodes});
  counts_[kind] += nodes;
  rates_[kind].changes += nodes;
  count_ += nodes;
  price_ += classes_[kind].price_per_hour * static_cast<double>(nodes);
}

void NodesHere::go(std::size_t kind, index_t nodes, double born_seconds) {
  std::vector<Group>& groups = groups_[kind];
  // The group that holds them: the first whose youngest is no older.
  auto group =
      std::lower_bound(groups.begin(), groups.end(), born_seconds,
                       [](const Group& other, double born) { return other.born_seconds < born; });
  T3D_CHECK(group != groups.end() && group->nodes >= nodes, "{} nodes born at {} are not here",
            nodes, born_seconds);
  group->nodes -= nodes;
  if (group->nodes == 0) groups.erase(group);
  counts_[kind] -= nodes;
  rates_[kind].changes += nodes;
  count_ -= nodes;
  price_ -= classes_[kind].price_per_hour * static_cast<double>(nodes);
  if (count_ == 0) price_ = 0;
}

void NodesHere::merge(std::size_t kind, double now_seconds) {
  std::vector<Group>& groups = groups_[kind];
  std::size_t kept = 0;
  for (std::size_t at = 1; at < groups.size(); ++at) {
    const double age = now_seconds - groups[at].born_seconds;
    if (groups[at].born_seconds - groups[kept].born_seconds < kAlike * age) {
      groups[kept].born_seconds = groups[at].born_seconds;
      groups[kept].nodes += groups[at].nodes;
    } else {
      groups[++kept] = groups[at];
    }
  }
  if (!groups.empty()) groups.resize(kept + 1);
}

double NodesHere::losses_per_node_hour(std::size_t kind, double now_seconds) {
  const Hazard& hazard = classes_[kind].hazard;
  if (counts_[kind] == 0 || hazard.never()) return 0;
  Rate& rate = rates_[kind];
  if (now_seconds - rate.seconds < kSameSeconds && rate.changes * kFewChanges <= counts_[kind])
    return rate.per_hour;
  merge(kind, now_seconds);
  double sum = 0;
  for (const Group& group : groups_[kind])
    sum += static_cast<double>(group.nodes) *
           hazard.per_hour(std::max(now_seconds - group.born_seconds, 0.0) / 3600);
  rate = {now_seconds, sum / static_cast<double>(counts_[kind]), 0};
  return rate.per_hour;
}

void CopyGroups::begin(index_t nodes, int copies) {
  copies_ = copies;
  left_ = nodes;
  groups_.assign(static_cast<std::size_t>(copies), 0);
  groups_[0] = nodes / copies;
  // A rest of fewer nodes than a group has joins whole groups, which then have more copies than
  // they need; where there is no whole group, it is one of which some members are missing.
  if (const index_t rest = nodes % copies; rest > 0 && groups_[0] == 0)
    groups_[static_cast<std::size_t>(copies - rest)] = 1;
}

bool CopyGroups::lose(double uniform) {
  if (left_ <= 0) return true;
  double rest = uniform * static_cast<double>(left_);
  --left_;
  for (std::size_t lost = 0; lost < groups_.size(); ++lost) {
    const double members = static_cast<double>(groups_[lost] * (copies_ - static_cast<int>(lost)));
    if (rest >= members) {
      rest -= members;
      continue;
    }
    --groups_[lost];
    if (lost + 1 == groups_.size()) return true;
    ++groups_[lost + 1];
    return false;
  }
  return false;  // one of the rest
}

}  // namespace t3d
