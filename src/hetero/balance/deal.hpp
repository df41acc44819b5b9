// Units dealt to replicas within limits: what all controllers and the simulation have in common.
#pragma once
#include "hetero/balance/share_controller.hpp"
#include "hetero/solve/apportion.hpp"

namespace t3d {

using Shares = std::vector<index_t>;

/// Exact min-max apportionment within the limits. Throws Error(config) where there is none.
[[nodiscard]] Shares deal(std::size_t replicas, const ShareLimits& limits,
                          const PartSeconds& seconds);

/// As even as the limits allow; the first ones get the extra.
[[nodiscard]] Shares deal_evenly(std::size_t replicas, const ShareLimits& limits);

/// The upper limit of a replica.
[[nodiscard]] inline index_t most_of(const ShareLimits& limits, std::size_t replica) {
  return limits.most.empty() ? limits.total : limits.most[replica];
}

/// Of `shares`, what can be had.
[[nodiscard]] inline Shares nearest(const PossibleShares& possible, Shares shares) {
  return possible ? possible(shares) : shares;
}

/// Units that change hands.
[[nodiscard]] index_t units_moved(std::span<const index_t> from, std::span<const index_t> to);

/// Half of the way from one deal to another with the same sum, at least one unit of it.
[[nodiscard]] Shares halfway(std::span<const index_t> from, std::span<const index_t> to);

}  // namespace t3d
