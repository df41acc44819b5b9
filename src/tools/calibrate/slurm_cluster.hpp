// What Slurm's configuration tells of a cluster: classes of nodes that are alike, partitions with
// their limits, preemption and billing weights, levels of switches. No rates: those are measured.
// Formats as of Slurm 20.11 to 24.11.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "forecast/cluster/cluster.hpp"

namespace t3d {

/// Output of the commands below; empty where a site does not allow one of them.
struct SlurmTexts {
  std::string nodes;       // sinfo --noheader --exact --format=kSlurmNodeFormat
  std::string partitions;  // scontrol --oneliner show partition
  std::string config;      // scontrol show config
  std::string topology;    // scontrol show topology
};
/// Partition, nodes, state, CPUs, sockets, cores per socket, threads per core, MiB, features, GRES,
/// names.
inline constexpr const char* kSlurmNodeFormat = "%R|%D|%T|%c|%X|%Y|%Z|%m|%f|%G|%N";

/// Nothing where there is no sinfo, or no controller answers.
[[nodiscard]] std::optional<SlurmTexts> ask_slurm_for_cluster();

/// All of it uncalibrated. `notes`: what was left out, and why. Error(unavailable) where the texts
/// have no node.
[[nodiscard]] Cluster slurm_cluster_of(const SlurmTexts& texts, std::vector<std::string>& notes);

/// TRESBillingWeights, "CPU=1.0,Mem=0.25G,GRES/gpu=2.0". Of several types of GPU the dearest.
[[nodiscard]] Billing billing_of_weights(const std::string& weights);

}  // namespace t3d
