// What aggregation and optimizers send. Internal to `hetero`.
#pragma once
#include "hetero/cost/layer_traffic.hpp"
#include "tensor3d/matrix_owners.hpp"

namespace t3d {

/// Aggregation over the replicas, then the optimizer.
void add_update(const RankView& rank, TrafficTable& traffic);

/// Parameters that aggregation treats as one vector, by plan.aggregate.per.
[[nodiscard]] index_t group_count(const Plan& plan);

/// The matrices of blocks, in the order of the buckets, and who of `ranks` computes which (Muon).
struct HiddenMatrix {
  index_t rows = 0, cols = 0;
};
[[nodiscard]] std::vector<HiddenMatrix> hidden_matrices(const ModelConfig& model);
[[nodiscard]] MatrixOwners muon_owners(const std::vector<HiddenMatrix>& matrices,
                                       const ReplicaPlan& replica);

/// Number format in which leaves travel.
[[nodiscard]] DType leaf_wire(const RankView& rank);

/// Rows of received gradients begin where vector loads like it: 256 bytes of fp32.
inline constexpr index_t kLeafRowUnit = 64;

}  // namespace t3d
