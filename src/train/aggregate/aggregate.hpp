// Aggregation: how the leaves of all replicas become one vector, on every replica with the same
// bits. What is aggregated are flat shards of the buckets (gradients, or changes of the weights):
// every element of a cuboid is on one of its ranks, so that a sum over all ranks counts it once
// whatever the cuboid is.
//
//   keep(leaf) ...      for all leaves but the last, when their gradients are complete
//   start(bucket) ...   for the last leaf, bucket by bucket, as soon as one is complete: messages
//   finish()            waits, decides, combines; the shards hold the result
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "train/aggregate/leaves.hpp"
#include "train/optimizer/param_groups.hpp"

namespace t3d {

class Aggregation {
 public:
  virtual ~Aggregation() = default;
  virtual void keep(index_t leaf, std::size_t bucket, ConstTensorView shard) = 0;
  /// `shard` must stay until finish(), which overwrites it.
  virtual void start(std::size_t bucket, TensorView shard) = 0;
  /// What is queued from now on comes after the messages started so far.
  virtual void settle() = 0;
  /// Leaves::weights of the steps to come; before the first start() of one. The same on all ranks.
  virtual void set_weights(const std::vector<double>& weights) = 0;
  /// The vectors have been multiplied by 1/unscale (loss scaling).
  virtual void finish(double unscale) = 0;

  /// [1, groups] fp64 on the device: what each group's step is to be multiplied with; empty data =
  /// 1.
  [[nodiscard]] virtual ConstTensorView gains() const { return {}; }
  /// AdasumArgs::summary of the last finish(), equal on all ranks; empty data = not known.
  [[nodiscard]] virtual ConstTensorView summary() const { return {}; }
  /// AdasumArgs::noise, part of the run's state; empty data = none.
  [[nodiscard]] virtual TensorView noise() { return {}; }
  /// One line for the log: what is done.
  [[nodiscard]] virtual std::string describe() const = 0;
};

/// Whether the aggregation of that plan keeps a noise estimate, and its name in checkpoints.
[[nodiscard]] bool has_noise(const Plan& plan);
inline constexpr const char* kNoiseState = "aggregate/noise";

/// What an aggregation is made of.
struct AggregateSetup {
  const Context& context;
  const Plan& plan;
  const std::vector<ParamBucket*>& buckets;
  const ParamGroups& groups;
  Leaves leaves;
  /// Given: the shards become the weighted mean, and gains() = gain^this says the rest.
  std::optional<double> gain_exponent;
};
/// Collective over the world.
[[nodiscard]] std::unique_ptr<Aggregation> make_aggregation(const AggregateSetup& setup);

/// Its parts: aggregate_all_reduce.cpp (mean, sum, flat), aggregate_refined.cpp (mean and sum of
/// different cuboids), aggregate_gram.cpp.
[[nodiscard]] std::unique_ptr<Aggregation> make_all_reduce_aggregation(const AggregateSetup& setup);
[[nodiscard]] std::unique_ptr<Aggregation> make_refined_aggregation(const AggregateSetup& setup);
[[nodiscard]] std::unique_ptr<Aggregation> make_gram_aggregation(const AggregateSetup& setup);

}  // namespace t3d
