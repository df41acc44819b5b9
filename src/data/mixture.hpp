// MixtureSchedule: which source every sample of a mixture comes from. Weights become whole numbers
// k of Q samples, at most 2^20 of them, so that no share is wrong by more than 1e-6 of all samples;
// weights whose ratios are simple (0.7 : 0.2 : 0.1) are exact. Of the Q samples of a period, source
// s gives k[s], and among any of its first n there are more than n k[s] / Q - 1 and fewer than n
// k[s] / Q + 1: so in ANY window of samples, each source is within 2 samples of its exact share.
//
// This is the fair schedule of one machine: sample m of source s may come from position
// floor(m Q / k) on and must come before ceil((m + 1) Q / k); taking the earliest deadline first
// keeps all of them where the weights sum up to 1 (Baruah, Cohen, Plaxton, Varvel 1996).
#pragma once
#include <cstdint>
#include <vector>

#include "core/types.hpp"

namespace t3d {

/// Whole numbers in the ratio of the weights. Error(config) when a weight is not above 0, or is
/// less than a millionth of all.
[[nodiscard]] std::vector<index_t> whole_shares(const std::vector<double>& weights);

class MixtureSchedule {
 public:
  explicit MixtureSchedule(const std::vector<double>& weights);

  struct Place {
    std::size_t source = 0;
    index_t position = 0;  // how many samples of this source came before
  };
  /// A pure function of weights and position; up to 1024 steps of a loop.
  [[nodiscard]] Place at(index_t position) const;

  [[nodiscard]] const std::vector<index_t>& shares() const { return shares_; }
  [[nodiscard]] index_t period() const { return static_cast<index_t>(table_.size()); }

 private:
  void fill_table();
  std::vector<index_t> shares_;       // k
  std::vector<std::uint16_t> table_;  // [Q] the sources of a period
  std::vector<index_t> counts_;       // [Q / kStep, sources] samples of each before a position
};

}  // namespace t3d
