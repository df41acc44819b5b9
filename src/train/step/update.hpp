// Update: from complete gradients to new weights, over all replicas. Two kinds:
//
//   shared   leaves' gradients are aggregated, then one optimizer, whose state all replicas hold
//            alike, steps along the result (mean, sum; adasum placed "pre" or "gain")
//   local    every leaf has an optimizer of its own and steps alone from the common weights; the
//            changes are aggregated and added to them (adasum placed "post"). Decoupled decay is
//            left out of the changes, in which it would be a parallel part, and done once after.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "train/aggregate/aggregate.hpp"
#include "train/optimizer/optimizer.hpp"

namespace t3d {

class Update {
 public:
  virtual ~Update() = default;
  /// A bucket's gradient of the last leaf is complete: what can start, starts. Told or not.
  virtual void bucket_done(std::size_t bucket) = 0;
  /// What is queued from now on comes after what bucket_done started.
  virtual void settle() = 0;
  /// All gradients of a leaf of this replica are complete, in the buckets' shares.
  virtual void leaf_done(index_t leaf, double lr) = 0;
  /// After the last leaf, before the report: everything that decides how long the step is.
  virtual void aggregate() = 0;
  /// result [1,1] fp64 += this rank's part of the squared norm of the gradient, to be summed over
  /// the world.
  virtual void add_squares(TensorView result) = 0;
  /// New weights. `factor` [1,1] fp64: what clipping by add_squares' norm leaves.
  virtual void apply(double lr, ConstTensorView factor) = 0;
  /// Steps done before the next one.
  virtual void set_steps_done(index_t done) = 0;
  /// What gradients are multiplied with on their way here.
  virtual void set_loss_scale(double scale) = 0;

  /// State that every replica holds alike, by kind; and that of the leaves of this replica.
  [[nodiscard]] virtual std::vector<Optimizer::State> state() = 0;
  [[nodiscard]] virtual std::vector<Optimizer::State> state_of_leaves() = 0;
  [[nodiscard]] virtual Aggregation& aggregation() = 0;
  /// Bytes that this rank sends in a step.
  virtual void predict(Ledger& ledger) const = 0;
};

/// Collective over the world.
[[nodiscard]] std::unique_ptr<Update> make_update(const Context& context, const Config& config,
                                                  const std::vector<ParamBucket*>& buckets);

}  // namespace t3d
