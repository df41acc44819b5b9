// Plan: everything a run needs to know about shape, placement, integer widths, batch shares and
// choices. One immutable value, made once (app from the input, later hetero from measurements),
// equal on every rank, kept in the run folder and in every checkpoint, and replayed. What it says
// is exact: nothing below rounds weights to widths again.
//
//   text()   one "key = value" per line, readable as TOML; parse_plan(text()) == the plan
//   hash()   of the text
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/mesh_shape.hpp"
#include "core/options.hpp"
#include "core/partition.hpp"

namespace t3d {

/// Of activations and matrix products.
[[nodiscard]] DType activation_of(ComputeType compute);

/// What one replica holds and does. Partitions have one part per rank of their axis; parts may be
/// empty.
struct ReplicaPlan {
  Cuboid cuboid{1, 1, 1};
  Partition hidden;      // over k, in elements
  Partition groups;      // over j, in key-value groups: a kv head and its query heads
  Partition ffn, vocab;  // over j, in elements
  Partition storage;     // over i: relative sizes of the shards at rest; even = {1, 1, ...}
  AttentionCut attention = AttentionCut::sequences;  // what k cuts inside attention
  /// How fast the ranks are at matrices that must be seen whole (Muon), relative, by place in the
  /// cuboid; empty = all alike. Decides who computes which (hetero/cost/matrix_owners.hpp); a
  /// matrix and its state lie in shards all the same.
  std::vector<index_t> whole;
  /// Micro-batches of a step in sequences, by leaf; a leaf may have none.
  std::vector<std::vector<index_t>> leaves{{}};
  /// Sequences over i, one cut for each size of micro-batch that occurs, by ascending size.
  std::vector<Partition> tokens;

  [[nodiscard]] index_t sequences() const;  // of a step
  [[nodiscard]] index_t sequences_of(std::size_t leaf) const;
  [[nodiscard]] index_t largest_micro() const;
  /// All parameters are cut as in `other`; the share of the batch may differ. What k cuts inside
  /// attention orders the columns of q, k and v, so it belongs to the cut.
  [[nodiscard]] bool cut_like(const ReplicaPlan& other) const;
  /// The cut of a micro-batch of `sequences`; a size that the plan does not list (evaluation) is
  /// cut in the proportions of the largest one that it does.
  [[nodiscard]] Partition tokens_of(index_t sequences) const;
  friend bool operator==(const ReplicaPlan&, const ReplicaPlan&) = default;
};

/// Of a plan, and so of a job.
inline constexpr index_t kMostRanks = index_t{1} << 24;

struct Plan {
  int ranks = 1;           // of the job; those without a place are idle
  std::vector<int> place;  // world rank of each slot (MeshShape); empty = 0, 1, 2, ...
  std::vector<ReplicaPlan> replicas{1};

  ModelConfig model;
  OptimizerKind optimizer = OptimizerKind::adamw;
  AggregateConfig aggregate;  // decided: nothing automatic, reference_batch > 0
  ComputeType compute = ComputeType::fp32;
  MatmulType matmul = MatmulType::compute;
  Recompute recompute = Recompute::none;
  /// Partial sums of activations travel in fp32, else in the activations' type.
  bool reduce_in_fp32 = false;
  /// Gathered weights / inputs stay until the backward pass, else they are gathered again.
  bool keep_weights = true, keep_inputs = true;
  TransportKind transport = TransportKind::host;
  /// Who may multiply and attend on GPUs. What a rank measured and chose is its own file: it is
  /// known after the first step only, and differs between GPUs.
  EngineRule gemm_engine = EngineRule::automatic, attention_engine = EngineRule::automatic;
  bool tune = true;
  index_t logits_bytes = index_t{128} << 20;  // of logits at a time

  /// Sequences of a step over all replicas.
  [[nodiscard]] index_t sequences() const;
  /// First of replica d's sequences within a step.
  [[nodiscard]] index_t first_sequence(index_t d) const;
  [[nodiscard]] index_t leaves_per_replica() const { return std::ssize(replicas.front().leaves); }
  [[nodiscard]] index_t largest_micro() const;
  [[nodiscard]] DType activation() const { return activation_of(compute); }
  /// Every leaf keeps an optimizer of its own, and their changes are combined, not the gradients.
  [[nodiscard]] bool updates_locally() const {
    return aggregate.method == AggregateMethod::adasum &&
           aggregate.placement == AggregatePlacement::post;
  }
  /// All replicas cut the model alike: their ranks of equal coordinates hold equal shards.
  [[nodiscard]] bool alike() const;
  /// The plans differ in the sequences of leaves and micro-batches and in how these are cut over i,
  /// and in nothing else: all state stays where it is.
  [[nodiscard]] bool same_parameters(const Plan& other) const;
  /// Samples of each leaf in units of the reference batch: by replica, then leaf.
  [[nodiscard]] std::vector<double> leaf_weights() const;
  [[nodiscard]] const ReplicaPlan& replica(index_t d) const {
    return replicas[static_cast<std::size_t>(d)];
  }

  /// The mesh of the ranks that have a place, numbered in the order of their world ranks.
  [[nodiscard]] MeshShape mesh() const;
  /// Those world ranks, ascending; all of them where nobody is idle.
  [[nodiscard]] std::vector<int> active() const;
  /// Number of the rank in active(), nothing where it is idle.
  [[nodiscard]] std::optional<int> active_rank(int world_rank) const;

  /// Throws a config Error that names what does not fit together.
  void check() const;
  [[nodiscard]] std::string text() const;
  /// 16 hexadecimal digits.
  [[nodiscard]] std::string hash() const;
  friend bool operator==(const Plan& a, const Plan& b) { return a.text() == b.text(); }
};

/// Throws Error(io) naming `source` where the text is not a plan, or not a sound one.
[[nodiscard]] Plan parse_plan(const std::string& text, const std::string& source);

/// Sequences of a step on each slab, replica after replica: all micro-batches together.
[[nodiscard]] std::vector<index_t> slab_sequences(const Plan& plan);

/// "replica 0 hidden: 64+64 -> 32+96", one for each line in which the texts differ.
[[nodiscard]] std::vector<std::string> plan_differences(const Plan& from, const Plan& to);

}  // namespace t3d
