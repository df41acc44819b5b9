// A shape that a job might have, before it is a plan, and what it takes at least. Internal to
// hetero/forecast.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "hetero/forecast/plan_search.hpp"

namespace t3d {

struct JobCandidate {
  index_t replicas = 1;
  Cuboid cuboid{1, 1, 1};
  index_t micro = 0;  // as PlanRecipe's
  Recompute recompute = Recompute::none;
  double bound = 0;  // seconds
  /// "2 x (4 x 2 x 1), micro-batch 8, recompute"
  [[nodiscard]] std::string text() const;
};

using LeftOutMap = std::map<std::string, LeftOut>;

/// All that the nodes' ranks can form; those with parts that would be empty are counted in
/// `left_out`.
[[nodiscard]] std::vector<JobCandidate> candidates_of(const SearchRequest& request,
                                                      const JobNodes& nodes, LeftOutMap& left_out);

/// Seconds that no plan of a candidate can beat, as far as the tables are right: products and
/// optimizer of the rank with the largest parts, and the bytes that its groups exchange, each at
/// the best rate of any class or level that could serve it.
class CandidateBounds {
 public:
  CandidateBounds(const ModelConfig& model, const JobNodes& nodes, const ClusterRates& rates,
                  ComputeType compute);
  [[nodiscard]] double seconds(const JobCandidate& candidate, const PlanRecipe& recipe) const;

 private:
  [[nodiscard]] double unit(OperatorKind kind) const {
    return unit_seconds_[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] double stream_seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                                      double tokens) const;
  [[nodiscard]] double message_seconds(const JobCandidate& candidate, const PlanRecipe& recipe,
                                       double tokens) const;
  /// Of one byte in a group of so many members that lie `stride` ranks apart.
  [[nodiscard]] double byte_seconds(index_t members, index_t stride) const;

  const ModelConfig& model_;
  bool one_class_, on_gpus_;
  double ranks_;
  index_t ranks_per_node_ = 1;                         // of the class with most
  double flop_seconds_;                                // at least, of the fastest class
  std::array<double, kOperatorKinds> unit_seconds_{};  // the same of a flop or a byte
  double inside_, between_;                            // of a message's byte, at least
};

}  // namespace t3d
