#include "forecast/cluster/level_estimator.hpp"

#include <algorithm>

namespace t3d {

LevelEstimator::LevelEstimator(const Level& level)
    : alpha_seconds_(level.alpha_seconds),
      beta_seconds_per_byte_(level.beta_seconds_per_byte),
      nics_(level.nodes == 1 ? 0 : static_cast<double>(level.nics_per_node)) {
  if (level.groups_together > 1)
    beta_further_group_ =
        std::max(0.0, level.beta_together_seconds_per_byte - level.beta_seconds_per_byte) /
        static_cast<double>(level.groups_together - 1);
  for (const CollectiveTable& table : level.collectives) {
    const Verb verb = table.verb;
    fits_[static_cast<std::size_t>(verb)].emplace(
        table.fit, table.samples, collective_form(),
        [verb](std::span<const double> shape) { return term_counts(verb, shape); },
        place_of_collective);
  }
}

double LevelEstimator::by_level(Verb verb, double peers, double bytes, double groups) const {
  double beta = beta_seconds_per_byte_;
  if (beta_further_group_)
    beta += *beta_further_group_ * (groups - 1);
  else if (nics_ > 0)
    beta *= std::max(1.0, groups / nics_);
  return alpha_seconds_ * messages_of(verb, peers, bytes) + beta * bytes;
}

double LevelEstimator::seconds(Verb verb, index_t peers, double bytes, double groups) const {
  if (peers <= 0) return 0;
  const auto& fit = fits_[static_cast<std::size_t>(verb)];
  const std::array<double, 3> shape{static_cast<double>(peers), bytes, groups};
  if (!fit) return by_level(verb, shape[0], shape[1], shape[2]);
  return fit->seconds(term_counts(verb, shape), place_of_collective(shape));
}

}  // namespace t3d
