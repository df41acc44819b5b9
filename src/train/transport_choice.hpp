// Which transport of adasum is faster here: a few numbers measured on the real links at start-up,
// and the cost of each transport by them (docs/decisions/008-adasum.md).
#pragma once
#include <string>

#include "train/aggregate.hpp"

namespace t3d {

/// The slowest rank's; the same on every rank.
struct LinkTimes {
  double message_seconds = 0;        // of an exchange of next to nothing with one peer
  double seconds_per_byte = 0;       // of messages
  double small_sum_seconds = 0;      // an all-reduce of some numbers over the world
  double pass_seconds_per_byte = 0;  // of memory that a kernel reads or writes
};
/// Collective over the world; some milliseconds.
[[nodiscard]] LinkTimes measure_links(const Context& context);

/// What is aggregated by each rank.
struct AggregateLoad {
  index_t replicas = 1;
  double bytes = 0;     // of a leaf
  double messages = 1;  // per peer: buckets
};
[[nodiscard]] double gram_seconds(const LinkTimes& times, const AggregateLoad& load);
[[nodiscard]] double rvh_seconds(const LinkTimes& times, const AggregateLoad& load);

/// "gram" or "rvh"; where only one can do it, that one without measuring. `clips`: the norm of the
/// mean gradient is asked for. Collective over the world.
[[nodiscard]] std::string choose_transport(const AggregateSetup& setup, bool clips);

}  // namespace t3d
