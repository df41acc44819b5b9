// One training of the digits by replicas: each step every replica that is there contributes the
// gradient of its own batch, and the verbs gram, adasum, combine and sgd make one update of them.
// The figure of a run is the number of steps until the held-out loss is at the target.
#pragma once
#include <string_view>
#include <vector>

#include "digits.hpp"

namespace t3d::bench {

/// From vectors to one vector, with the noise meter's memory. All buffers are in host memory.
class Aggregator {
 public:
  struct Wish {
    AggregateRule rule = AggregateRule::adasum;
    bool noise_leaf = true;
    double noise_decay = 0.9;
  };
  Aggregator(const Machine& machine, std::vector<Segment> segments, index_t groups);

  /// out [1, count] from x [n, count] and n weights.
  void combine(const Wish& wish, ConstTensorView x, const std::vector<double>& weights,
               TensorView out);
  [[nodiscard]] double gain(index_t group) const { return gains_.view().as<double>()[group]; }
  /// Noise over signal of a reference batch, as measured so far.
  [[nodiscard]] double noise_ratio(index_t group) const;

 private:
  Machine machine_;
  std::vector<Segment> segments_;
  Tensor noise_, gains_;
};

/// What becomes of the replicas' gradients.
struct Method {
  std::string_view name;
  Aggregator::Wish wish;
  bool weighted = true;  // else every replica counts the same, whatever its batch
};
inline constexpr Method kMean{"mean", {AggregateRule::mean}};
inline constexpr Method kSum{"sum", {AggregateRule::sum}};
inline constexpr Method kAdasum{"adasum", {AggregateRule::adasum}};
inline constexpr Method kLinearLeaf{"linear", {AggregateRule::adasum, false}};
inline constexpr Method kClassical{"classical", {AggregateRule::adasum, false}, false};

/// Who is there at a step. Replica i has batches[i % size], or any of them, anew every step.
struct Members {
  index_t least = 1, most = 1;
  std::vector<index_t> batches{16};
  bool draw_batches = false;
};

struct Training {
  Method method = kAdasum;
  Members members;
  double lr = 0.08;
  index_t cap = 1500;
};

/// A group's figures: medians over the steps of a run.
struct GroupFigures {
  double gain = 1, noise_ratio = 0, law = 1;  // law: expected_gain of the step's weights
};

struct Outcome {
  bool reached = false;
  index_t steps = 0;  // at the cap or where the loss stopped being a number, if not reached
  std::vector<GroupFigures> groups;
};

[[nodiscard]] Outcome train(const Machine& machine, const Training& training, std::uint64_t seed);

[[nodiscard]] double median(std::vector<double> values);

}  // namespace t3d::bench
