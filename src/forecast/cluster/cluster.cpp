#include "forecast/cluster/cluster.hpp"

#include <algorithm>
#include <cmath>

namespace t3d {
namespace {

/// Between the measured numbers of processes in proportion to their logarithm, constant outside.
double rate_at(const std::vector<StorageRate>& rates, index_t processes) {
  if (rates.empty()) return 0;
  const auto after = std::find_if(rates.begin(), rates.end(), [&](const StorageRate& rate) {
    return rate.processes >= processes;
  });
  if (after == rates.begin()) return after->bytes_per_second;
  const StorageRate& before = *std::prev(after);
  if (after == rates.end()) return before.bytes_per_second;
  const auto log = [](index_t count) { return std::log(static_cast<double>(count)); };
  const double part =
      (log(processes) - log(before.processes)) / (log(after->processes) - log(before.processes));
  return before.bytes_per_second + part * (after->bytes_per_second - before.bytes_per_second);
}

double transfer_seconds(const Storage& storage, const std::vector<StorageRate>& rates, double bytes,
                        index_t processes) {
  const double rate = rate_at(rates, processes);
  return rate > 0 ? storage.latency_seconds + bytes / rate : 0;
}

}  // namespace

double Storage::write_seconds(double bytes, index_t processes) const {
  return transfer_seconds(*this, writes, bytes, processes);
}

double Storage::read_seconds(double bytes, index_t processes) const {
  return transfer_seconds(*this, reads, bytes, processes);
}

double Startup::seconds(index_t ranks) const {
  if (starts.empty()) return 0;
  if (starts.size() == 1) return starts.front().seconds;
  // The two measurements around `ranks`, or the last two on its side.
  std::size_t at = 1;
  while (at + 1 < starts.size() && starts[at].ranks < ranks) ++at;
  const StartTime &a = starts[at - 1], &b = starts[at];
  const auto log = [](index_t count) { return std::log2(static_cast<double>(count)); };
  const double slope = (b.seconds - a.seconds) / (log(b.ranks) - log(a.ranks));
  const double line = a.seconds + slope * (log(ranks) - log(a.ranks));
  return std::max(line, std::min(a.seconds, b.seconds));
}

const NodeClass* Cluster::find_class(std::string_view wanted) const {
  const auto found = std::find_if(classes.begin(), classes.end(),
                                  [&](const NodeClass& one) { return one.name == wanted; });
  return found == classes.end() ? nullptr : &*found;
}

const SchedulerPartition* Cluster::find_partition(const NodeClass& of) const {
  const auto found = std::find_if(
      scheduler.partitions.begin(), scheduler.partitions.end(), [&](const SchedulerPartition& one) {
        return of.partition.empty() ? one.fallback : one.name == of.partition;
      });
  return found == scheduler.partitions.end() ? nullptr : &*found;
}

const Level* Cluster::find_level(std::string_view wanted, std::string_view node_class) const {
  const Level* any = nullptr;
  for (const Level& level : levels) {
    if (level.name != wanted) continue;
    if (level.node_class == node_class) return &level;
    if (level.node_class.empty()) any = &level;
  }
  return any;
}

}  // namespace t3d
