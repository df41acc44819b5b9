#include "hetero/balance/deal.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/error.hpp"

namespace t3d {

Shares deal(std::size_t replicas, const ShareLimits& limits, const PartSeconds& seconds) {
  const index_t least = limits.least, rest = limits.total - least * std::int64_t(replicas);
  if (least < 0 || rest < 0)
    throw_error(ExitCode::config, "{} units cannot give {} replicas at least {} each", limits.total,
                replicas, least);
  T3D_CHECK(limits.most.empty() || limits.most.size() == replicas, "{} limits for {} replicas",
            limits.most.size(), replicas);
  Shares room = limits.most;
  for (index_t& units : room) {
    units -= least;
    if (units < 0)
      throw_error(ExitCode::config, "a replica may hold {} units and must hold at least {}",
                  units + least, least);
  }
  Shares shares = min_max_apportion(
      replicas, rest,
      [&](std::size_t replica, index_t units) { return seconds(replica, units + least); }, room);
  for (index_t& units : shares) units += least;
  return shares;
}

Shares deal_evenly(std::size_t replicas, const ShareLimits& limits) {
  return deal(replicas, limits, [](std::size_t, index_t units) { return double(units); });
}

index_t units_moved(std::span<const index_t> from, std::span<const index_t> to) {
  index_t moved = 0;
  for (std::size_t n = 0; n < from.size(); ++n) moved += std::abs(to[n] - from[n]);
  return moved / 2;
}

Shares halfway(std::span<const index_t> from, std::span<const index_t> to) {
  // The receivers take half, rounded up together; the givers give as much, in order.
  const index_t half = (units_moved(from, to) + 1) / 2;
  index_t to_take = half, to_give = half;
  Shares between(from.begin(), from.end());
  const auto pass = [&](auto part_of) {
    for (std::size_t n = 0; n < between.size(); ++n) {
      const index_t left = to[n] - between[n];
      index_t& open = left > 0 ? to_take : to_give;
      const index_t units = std::min(part_of(std::abs(left)), open);
      open -= units;
      between[n] += left > 0 ? units : -units;
    }
  };
  pass([](index_t units) { return units / 2; });
  pass([](index_t units) { return std::min<index_t>(units, 1); });
  return between;
}

}  // namespace t3d
