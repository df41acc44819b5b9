// How long a collective takes at one level of the network: messages, bytes and how many groups send
// at once (comm/cost.hpp; decision 002). A group that spans several levels: the sum over them, each
// with the peers that this rank reaches by it and the bytes that it sends them.
#pragma once
#include <optional>

#include "forecast/cluster/cluster.hpp"
#include "forecast/cluster/sampled_fit.hpp"

namespace t3d {

class LevelEstimator {
 public:
  /// Copies what it needs. Verbs without a table follow the level's alpha and beta; what groups
  /// do to each other is as measured, else they share the node's NICs.
  explicit LevelEstimator(const Level& level);

  /// One rank sends `bytes` in all to `peers` others, while so many groups >= 1 do the same: of
  /// those whose messages meet, groups on one node's memory, ranks that send through one node's
  /// NICs. 0 for no peers.
  [[nodiscard]] double seconds(Verb verb, index_t peers, double bytes, double groups = 1) const;

 private:
  [[nodiscard]] double by_level(Verb verb, double peers, double bytes, double groups) const;

  std::array<std::optional<SampledFit>, kVerbs> fits_;
  double alpha_seconds_, beta_seconds_per_byte_;
  std::optional<double> beta_further_group_;  // measured
  double nics_;                               // of a node; 0 = inside a node
};

}  // namespace t3d
