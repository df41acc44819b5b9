// cluster.toml: what is known of a cluster, in TOML (docs/15-cluster-file.md). Reading lists all
// faults once; writing gives the same numbers back, bit for bit, each key with what it means.
#pragma once
#include <string>
#include <vector>

#include "forecast/cluster/cluster.hpp"

namespace t3d {

/// Throws ConfigErrors with every fault. `file_name` is for messages. `notes`, where it is wanted:
/// what is no fault and should be known.
[[nodiscard]] Cluster parse_cluster(const std::string& text, const std::string& file_name,
                                    std::vector<std::string>* notes = nullptr);
/// The same of a file; Error(no_input) where it cannot be read.
[[nodiscard]] Cluster load_cluster(const std::string& path,
                                   std::vector<std::string>* notes = nullptr);
/// Begins with `has_end = true` and ends with [end], so that a file that was cut is noticed.
[[nodiscard]] std::string cluster_text(const Cluster& cluster);

}  // namespace t3d
