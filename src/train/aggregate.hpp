// Aggregation: how the gradients of d replicas become one. Each replica brings the mean gradient
// over its own samples; `weight` is its share of the batch. All replicas get the same result.
#pragma once
#include <memory>
#include <vector>

#include "core/config.hpp"
#include "tensor3d/param_bucket.hpp"

namespace t3d {

class Aggregation {
 public:
  virtual ~Aggregation() = default;
  /// In place on the buckets' gradient shares; collective over axis d.
  virtual void run(const std::vector<ParamBucket*>& buckets, double weight) = 0;
  virtual void predict(Ledger& ledger, const std::vector<ParamBucket*>& buckets) const = 0;
};

/// method "mean": the weighted mean.
[[nodiscard]] std::unique_ptr<Aggregation> make_aggregation(const Context& context,
                                                            const AggregateConfig& options);

}  // namespace t3d
