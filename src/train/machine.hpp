// Machine: one rank's device, operators, queue, mesh and clock, wired together from the input.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/config.hpp"
#include "layers/model_shape.hpp"
#include "tensor3d/context.hpp"
#include "train/device_choice.hpp"

namespace t3d {

class Machine {
 public:
  /// Collective over `world`. `dry`: count memory and bytes, compute nothing.
  Machine(Communicator& world, const Config& config, const MeshShape& shape, bool dry = false);
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  [[nodiscard]] const Context& context() const { return *context_; }
  [[nodiscard]] Context& context() { return *context_; }
  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] Ops& ops() const { return *ops_; }
  [[nodiscard]] const Mesh& mesh() const { return *mesh_; }
  [[nodiscard]] PhaseClock& clock() { return clock_; }
  [[nodiscard]] const DeviceChoice& choice() const { return choice_; }
  /// A GPU runs behind the host: what a step reports is read one step later, so that nobody waits.
  /// The same on all ranks.
  [[nodiscard]] bool runs_ahead() const { return choice_.gpus > 0; }
  /// Micro-batches may be recorded as graphs: nothing in them passes through the host.
  [[nodiscard]] bool recordable() const {
    return choice_.gpu >= 0 && (choice_.nccl || choice_.alone);
  }

 private:
  DeviceChoice choice_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Ops> ops_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Communicator> device_world_;  // where data is not in host memory
  std::unique_ptr<Mesh> mesh_;
  PhaseClock clock_;
  std::unique_ptr<Context> context_;
};

/// Where a GPU rank keeps which engines it found fastest.
[[nodiscard]] std::string choices_file(const Config& config, int rank);

[[nodiscard]] DType compute_dtype(const PrecisionConfig& precision);

/// What one replica does in a step: where its share begins among the step's sequences, and its
/// micro-batches in sequences, by leaf (train/aggregate/leaves.hpp). A leaf may have none.
struct LeafShare {
  index_t sequences = 0;
  std::vector<index_t> micro;
};
struct ReplicaShare {
  index_t first = 0, sequences = 0;
  std::vector<LeafShare> leaves;
  [[nodiscard]] std::vector<index_t> micro() const;  // of all leaves
};
[[nodiscard]] ReplicaShare replica_share(const Config& config, index_t replica);

/// Leaves of a replica: more than one for adasum only, as sums do not care.
[[nodiscard]] index_t leaves_per_replica(const Config& config);

/// aggregate.reference_batch, or where it is not given an even share of a leaf.
[[nodiscard]] double reference_batch(const Config& config);

/// Largest micro-batch of any replica, in sequences.
[[nodiscard]] index_t largest_micro(const Config& config);

/// Extra memory for keeping gathered operands from forward to backward (weights, inputs), in bytes.
struct KeepCost {
  index_t weights_bytes = 0, inputs_bytes = 0;
};
[[nodiscard]] KeepCost keep_cost(const ModelShape& shape, const Coord& coord, DType activation,
                                 index_t micro_sequences, bool recompute);

}  // namespace t3d
