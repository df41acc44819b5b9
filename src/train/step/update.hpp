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

/// State of the optimizers under the name that it has in checkpoints: "optimizer/m" where all
/// replicas hold it alike, else that of one leaf: "aggregate/leaf-3/m".
struct StateSlot {
  std::string name;
  index_t leaf = kShared;  // number over all replicas
  StateBuffers* buffers = nullptr;
  static constexpr index_t kShared = -1;
};

class Update {
 public:
  virtual ~Update() = default;
  /// A bucket's gradient of the last leaf is complete: what can start, starts. Told or not.
  virtual void bucket_done(std::size_t bucket) = 0;
  /// What is queued from now on comes after what bucket_done started.
  virtual void settle() = 0;
  /// All gradients of a leaf of this replica are complete, in the buckets' shards.
  virtual void leaf_done(index_t leaf, double lr) = 0;
  /// After the last leaf, before the report: everything that decides how long the step is.
  virtual void aggregate() = 0;
  /// result [1,1] fp64 += this rank's part of the squared norm of the gradient, to be summed over
  /// the world.
  virtual void add_squares(TensorView result) = 0;
  /// result [1,1] fp64 += this rank's part of the sum of Leaves::weights times |the leaf's
  /// gradient|^2, to be summed over the world; nothing where the aggregation's summary holds the
  /// noise, or where there is one leaf. Once after each aggregate().
  virtual void add_leaf_squares(TensorView result) = 0;
  /// New weights. `factor` [1,1] fp64: what clipping by add_squares' norm leaves.
  virtual void apply(double lr, ConstTensorView factor) = 0;
  /// Updates of the weights so far; steps that were skipped do not count.
  virtual void set_updates_done(index_t done) = 0;
  /// Leaves::weights of the steps to come. The same on all ranks.
  virtual void set_weights(const std::vector<double>& weights) = 0;
  /// What gradients are multiplied with on their way here.
  virtual void set_loss_scale(double scale) = 0;

  /// Zero state.
  void initialise() {
    for (const StateSlot& slot : state()) slot.buffers->clear();
  }
  [[nodiscard]] virtual std::vector<StateSlot> state() = 0;
  [[nodiscard]] virtual Aggregation& aggregation() = 0;
};

/// Collective over the mesh.
[[nodiscard]] std::unique_ptr<Update> make_update(const Context& context, const Plan& plan,
                                                  const OptimizerConfig& options,
                                                  const std::vector<ParamBucket*>& buckets);

}  // namespace t3d
